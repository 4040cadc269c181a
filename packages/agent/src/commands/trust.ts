/** `tidemark trust`: shows what a project's settings want to set and run, and stores that the user trusts it. */

import { realpath, stat } from 'node:fs/promises'
import { printError, printMisuse } from '@tidemark/terminal/render/print-errors'
import { formatPath } from '@tidemark/terminal/render/text'
import { askYesNo, EXIT_CODES, type Terminal } from '@tidemark/terminal/terminal'
import { tidemarkHome } from 'tidemark/logs'
import { listPromptFileProblems } from '../agent/agent-definitions.ts'
import { formatTrustItem, listTrustedFolders, replaceTrust, withdrawTrust } from '../agent/folder-trust.ts'
import { type AgentSettings, readSettings } from '../agent/settings.ts'

export interface TrustCommandOptions {
  readonly yes?: boolean
  readonly withdraw?: boolean
  readonly list?: boolean
}

/**
 * Shows what is not trusted, asks, and stores the answer. `given`: the folder; default: the current one. Returns the exit code.
 */
export async function runTrustCommand(
  given: string | undefined,
  choices: TrustCommandOptions,
  terminal: Terminal,
): Promise<number> {
  const home = tidemarkHome(terminal.env)
  if (choices.list === true) {
    for (const folder of await listTrustedFolders(home)) terminal.write(`${formatPath(folder)}\n`)
    return EXIT_CODES.done
  }
  const named = given ?? process.cwd()
  const isFolder = await stat(named).then(
    (facts) => facts.isDirectory(),
    () => false,
  )
  if (choices.withdraw === true) {
    const hadTrust = await withdrawTrust(home, named)
    // Trust in a deleted folder can be withdrawn, too.
    if (!hadTrust && !isFolder) return printMisuse(`${named} is not a folder.`, terminal)
    terminal.write(`${formatPath(named)} is ${hadTrust ? 'no longer' : 'not'} trusted\n`)
    return EXIT_CODES.done
  }
  if (!isFolder) return printMisuse(`${named} is not a folder.`, terminal)
  const folder = await realpath(named)
  const settings = await readSettings(folder, terminal.env)
  const { items = [], untrusted = [] } = settings.trust ?? {}
  const listing = formatUntrustedItems(folder, settings.trust)
  for (const problem of await listPromptFileProblems(folder)) printError(problem, terminal)
  if (untrusted.length === 0 && settings.isTrusted === true) {
    terminal.write(`${formatPath(folder)} is trusted already\n`)
    return EXIT_CODES.done
  }
  const isTrusted = choices.yes === true || (await askForTrust(listing, terminal))
  if (isTrusted === null) {
    terminal.warn(listing)
    return printError('nothing was trusted: confirm with --yes.', terminal)
  }
  if (!isTrusted) return printError('nothing was trusted.', terminal)
  await replaceTrust(home, folder, items)
  terminal.write(`${choices.yes === true ? listing : ''}${formatPath(folder)} is trusted\n`)
  return EXIT_CODES.done
}

/** Lists what the user has not trusted in its present form. */
function formatUntrustedItems(folder: string, trust: AgentSettings['trust']): string {
  const { untrusted = [], changed = [] } = trust ?? {}
  if (untrusted.length === 0) return `The settings in ${formatPath(folder)} want to set nothing.\n`
  const lines = untrusted
    .map((item) => {
      const note = changed.includes(item) ? ' (has changed since you trusted it)' : ''
      return `  ${formatTrustItem(item)}${note}\n`
    })
    .join('')
  return `The settings in ${formatPath(folder)} want to set:\n${lines}`
}

/** Shows the untrusted parts and asks for trust. Returns null if there is no terminal. */
async function askForTrust(listing: string, terminal: Terminal): Promise<boolean | null> {
  const question =
    'Hooks and MCP servers run without further questions, with all your rights. Trust this folder?'
  return await askYesNo(`${listing}${question}`, terminal)
}

/**
 * Asks the user to trust the new parts of a project's settings before the agent starts, and stores the answer. Returns the
 * settings to use: without these parts if the user refuses.
 */
export async function offerTrust(
  folder: string,
  settings: AgentSettings,
  terminal: Terminal,
): Promise<AgentSettings> {
  const { items = [], offered = [] } = settings.trust ?? {}
  if (offered.length === 0) return settings
  const isTrusted = await askForTrust(formatUntrustedItems(folder, settings.trust), terminal)
  if (isTrusted !== true) return settings
  await replaceTrust(tidemarkHome(terminal.env), folder, items)
  // The settings are read again, because parts that have changed since the question are not covered by the answer.
  return await readSettings(folder, terminal.env)
}
