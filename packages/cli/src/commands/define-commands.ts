/**
 * Defines all commands with their arguments, options and help. The code of a command is loaded when the command runs,
 * so that help and errors appear at once: this file imports only types, but for the parsers of options.
 */

import type { ChatCommandOptions } from '@tidemark/agent/chat'
import type { TourCommandOptions } from '@tidemark/agent/tour'
import type { TrustCommandOptions } from '@tidemark/agent/trust'
import type { Terminal } from '@tidemark/terminal/terminal'
import { type Command, Option } from 'commander'
import type { SortKey } from 'tidemark/internal'
import type { UndoInProcess } from '../ui/page-undo.ts'
import type { CompactCommandOptions } from './compact-options.ts'
import { addGatewayCommands } from './define-gateway.ts'
import type { ExportCommandOptions } from './export.ts'
import type { InspectCommandOptions } from './inspect.ts'
import type { NotesCommandOptions } from './notes.ts'
import {
  MAX_BODY_HELP,
  parseLimits,
  parseMegabytes,
  parsePercent,
  parsePort,
  parsePositive,
  parseSessionChoice,
  parseTokenCount,
  parseUrl,
  parseWholeNumber,
} from './option-parsers.ts'
import type { RepairCommandOptions } from './repair.ts'
import type { ReplayCommandOptions } from './replay.ts'
import type { SimulateCommandOptions } from './simulate.ts'
import type { UiCommandOptions } from './ui.ts'
import type { WatchCommandOptions } from './watch.ts'

/** Adds all commands to `program`. Each command writes its exit code to `outcome`. */
export function addCommands(program: Command, terminal: Terminal, outcome: { code: number }): void {
  for (const add of [
    addChat,
    addTrust,
    addInspect,
    addUi,
    addCompact,
    addSessions,
    addRepair,
    addExport,
    addNotes,
    addReplay,
    addSimulate,
    addWatch,
    addGatewayCommands,
    addSample,
    addTour,
  ])
    add(program, terminal, outcome)
}

type AddCommand = typeof addCommands

/** The ways to sort the table. The type makes sure that none is missing. */
const SORT_CHOICES: Readonly<Record<SortKey, true>> = {
  cost: true,
  tokens: true,
  calls: true,
  date: true,
  hit: true,
}

const POLICY_NAMES = 'default, economy, claude-code-like, nothing, or a JSON file of settings'

const REPLAY_EXAMPLES = `
Examples:
  tidemark replay                                      the newest sessions
  tidemark replay FILE --policy default,economy        one session, two policies
  tidemark replay DIR --policy mine.json --json        settings of your own
`

const addReplay: AddCommand = (program, terminal, outcome) => {
  program
    .command('replay')
    .description(
      'what past sessions would have cost under other policies, and what the model would have had in view',
    )
    .argument(
      '[paths...]',
      'files, folders and ids of own sessions; default: the newest sessions of Claude Code, Codex and Tidemark',
    )
    .option('--policy <names>', `policies, separated by commas: ${POLICY_NAMES}; default: default`)
    .option('--window <tokens>', "the context window; default: that of the session's model", parseTokenCount)
    .option(
      '--limit <number>',
      'replay at most this many sessions, the newest first, 0 for all; without paths: 20',
      parseWholeNumber,
    )
    .option('--json', 'print one JSON value: { sessions, skipped, caveat }')
    .addHelpText('after', REPLAY_EXAMPLES)
    .action(async (paths: readonly string[], choices: ReplayCommandOptions) => {
      const { runReplayCommand } = await import('./replay.ts')
      outcome.code = await runReplayCommand(paths, choices, terminal)
    })
}

const SESSION_LIMIT_HELP =
  'what the session and its subagents may use in all: dollars=5,turns=200,tokens=1000000'
const SUBAGENT_LIMIT_HELP = 'what one run of a subagent may use; default: turns=500'

const addChat: AddCommand = (program, terminal, outcome) => {
  program
    .command('chat')
    .description('run an agent in this folder: it reads, edits and runs what you permit')
    .option(
      '-p, --prompt [text]',
      'run one prompt and print the answer; without text, it is read from standard input',
    )
    .option('--resume <id>', 'go on with this session')
    .option('-c, --continue', 'go on with the newest session of this folder')
    .option('--model <name>', 'the model; default: that of the settings, or claude-sonnet-5-5')
    .option(
      '--base-url <url>',
      'the API to call, such as tidemark simulate; default: ANTHROPIC_BASE_URL',
      parseUrl,
    )
    .option('--window <tokens>', 'the context window of the model', parseTokenCount)
    .option('--max-turns <number>', 'stop after this many calls to the model', parsePositive)
    .option('--limit <limits>', SESSION_LIMIT_HELP, parseLimits)
    .option('--subagent-limit <limits>', SUBAGENT_LIMIT_HELP, parseLimits)
    .option(
      '--allowed-tools <rules...>',
      'tools that need no permission: Edit, "Bash(npm test:*)", "WebFetch(domain:example.com)"',
    )
    .addOption(
      new Option(
        '--permission-mode <mode>',
        'what needs no rule besides reading in the folder: nothing, editing in it, or everything; plan: only read',
      ).choices(['default', 'accept-edits', 'allow-all', 'plan']),
    )
    .option('--append-system-prompt <text>', 'instructions to add to the system prompt')
    .option('--cwd <folder>', 'the working directory; default: the current one')
    .addOption(
      new Option(
        '--output-format <format>',
        'the answer as text, one JSON value, or a JSON line for each event',
      )
        .choices(['text', 'json', 'stream-json'])
        .default('text'),
    )
    .addOption(
      new Option('--input-format <format>', 'stream-json: prompts as JSON lines on standard input')
        .choices(['text', 'stream-json'])
        .default('text'),
    )
    .option('--ui', 'also serve the page of the sessions, and print its address')
    .action(async ({ ui, ...choices }: ChatCommandOptions & { readonly ui?: boolean }) => {
      const { runChatCommand } = await import('@tidemark/agent/chat')
      if (ui !== true) {
        outcome.code = await runChatCommand(choices, terminal, process.stdin)
        return
      }
      const page = await startChatPage(terminal)
      try {
        outcome.code = await runChatCommand({ ...choices, onUndo: page.setUndo }, terminal, process.stdin)
      } finally {
        await page.close()
      }
    })
}

interface ChatPage {
  /** Sets the undo function of the chat's session. The page is served before that session is open. */
  setUndo(undo: UndoInProcess): void
  close(): Promise<void>
}

async function startChatPage(terminal: Terminal): Promise<ChatPage> {
  const { tidemarkHome } = await import('tidemark/logs')
  const { serveHomeSessions } = await import('../ui/serve-home-sessions.ts')
  let undoHere: UndoInProcess = async () => null
  const page = await serveHomeSessions({
    home: tidemarkHome(terminal.env),
    timeZone: terminal.env.TZ,
    undoHere: (session, target) => undoHere(session, target),
  })
  terminal.warn(`The page: ${page.url}\n`)
  return {
    setUndo(undo) {
      undoHere = undo
    },
    close: page.close,
  }
}

const addTrust: AddCommand = (program, terminal, outcome) => {
  program
    .command('trust')
    .description('show what a project wants to set and run, and trust it')
    .argument('[folder]', 'the project; default: the current folder')
    .option('--yes', 'do not ask')
    .option('--withdraw', 'trust nothing in this folder any longer')
    .option('--list', 'list the folders with something that you have trusted')
    .action(async (folder: string | undefined, choices: TrustCommandOptions) => {
      const { runTrustCommand } = await import('@tidemark/agent/trust')
      outcome.code = await runTrustCommand(folder, choices, terminal)
    })
}

const addInspect: AddCommand = (program, terminal, outcome) => {
  program
    .command('inspect')
    .description('show what filled the context of past sessions, and what they cost')
    .argument(
      '[paths...]',
      'files, folders and ids of own sessions; default: the newest sessions of Claude Code, Codex and Tidemark',
    )
    .option(
      '--session <which>',
      'show only this session: its number in the table, or the beginning of its id',
      parseSessionChoice,
    )
    .addOption(new Option('--sort <by>', 'order of the table').choices(Object.keys(SORT_CHOICES)))
    .option('--limit <rows>', 'number of sessions in the table, 0 for all', parseWholeNumber)
    .option(
      '--since <when>',
      'only sessions used since then, with totals from that day on: 7d, 12h, 2026-11-01',
    )
    .option('--html <file>', 'write the page of one session to this file, which needs nothing else')
    .option('--card <file>', 'write a picture of one session to this file, as SVG')
    .option('--with-text', 'with --html: also its texts, paths and names; default: none of them')
    .option('--json', 'print one JSON value: { sessions, totals, unreadable, notRead }')
    .action(async (paths: readonly string[], given: InspectArguments, command: Command) => {
      const { since, ...choices } = given
      const moment = since === undefined ? {} : { since: await parseMoment(since, command) }
      const { runInspectCommand } = await import('./inspect.ts')
      outcome.code = await runInspectCommand(paths, { ...choices, ...moment }, terminal)
    })
}

const addUi: AddCommand = (program, terminal, outcome) => {
  program
    .command('ui')
    .description('open a page in the browser that shows what past and running sessions kept, lost and cost')
    .argument(
      '[paths...]',
      'files, folders and ids of own sessions; default: the newest sessions of Claude Code, Codex and Tidemark',
    )
    .option('--port <number>', 'port to listen on; default: any free port', parsePort)
    .option('--no-open', 'only print the address')
    .option(
      '--limit <number>',
      'number of sessions to read, the newest first, 0 for all; without paths: 20',
      parseWholeNumber,
    )
    .option('--json', 'print one line { "url": ... } once it listens, and nothing else')
    .action(async (paths: readonly string[], choices: UiCommandOptions) => {
      const { runUiCommand } = await import('./ui.ts')
      outcome.code = await runUiCommand(paths, choices, terminal)
    })
}

interface InspectArguments extends Omit<InspectCommandOptions, 'since'> {
  readonly since?: string
}

const addCompact: AddCommand = (program, terminal, outcome) => {
  program
    .command('compact')
    .description(
      'compact a session: shows plan, draft and receipt; -o writes a new session that continues from there',
    )
    .argument(
      '<file>',
      'a session of Tidemark, Claude Code or Codex, or the id of an own session; only sessions of Tidemark itself are ever changed, after a question',
    )
    .option('--at <uuid>', 'compact as of this record; moved back to where the conversation may be cut')
    .option('--from <uuid>', 'summarize from this record on, and keep what comes before')
    .option('--up-to <uuid>', 'summarize what comes before this record, and keep the rest')
    .option('--instructions <text>', 'instructions for the model that writes the summary')
    .addOption(
      new Option('--summarizer <which>', 'what writes the summary')
        .choices(['local', 'model'])
        .default('local'),
    )
    .option('--target <tokens>', 'size limit of the conversation afterwards', parseTokenCount)
    .option(
      '--max-percent <percent>',
      'largest result in percent of what it replaces; default: 50',
      parsePercent,
    )
    .option('--ledger <tokens>', 'size limit of the list of names in use; default: 1,500', parseWholeNumber)
    .option('--model <name>', 'the model that continues the session; default: the one in the log')
    .option('--window <tokens>', 'the context window of that model', parseTokenCount)
    .option('--base-url <url>', 'with --summarizer model: the API to call, such as tidemark simulate')
    .option(
      '--session <which>',
      'if the file is a folder: the number of the session, or the beginning of its id',
      parseSessionChoice,
    )
    .option('--dry-run', 'write nothing')
    .option('-o, --output <file>', 'write a new session that contains the old one and continues after it')
    .option('--force', 'with -o: replace an existing file; with --undo: undo even if it no longer fits')
    .option('--undo <id>', 'undo this compaction or clearing instead')
    .option('--yes', 'change a session of Tidemark itself without asking')
    .option('--full', 'show the whole draft')
    .option(
      '--json',
      'print one JSON value: { tokensBefore, tokensAfter, summary, ledger, messages, receipt, trace, ... }',
    )
    .action(async (file: string, choices: CompactCommandOptions) => {
      const { runCompactCommand } = await import('./compact.ts')
      outcome.code = await runCompactCommand(file, choices, terminal)
    })
}

const addSessions: AddCommand = (program, terminal, outcome) => {
  const sessions = program.command('sessions').description("list, search and delete Tidemark's own sessions")
  sessions
    .command('list', { isDefault: true })
    .description('list the sessions, newest first')
    .option('--json', 'print one JSON value: { home, sessions }')
    .action(async (choices: { readonly json?: boolean }) => {
      const { printSessionList } = await import('./sessions.ts')
      outcome.code = await printSessionList(choices, terminal)
    })
  sessions
    .command('find')
    .description('search the text of the sessions, with their large results')
    .argument('<text>', 'the text to find, in upper or lower case')
    .option('--json', 'print one JSON value: { home, matches }')
    .action(async (text: string, choices: { readonly json?: boolean }) => {
      const { printSessionMatches } = await import('./sessions.ts')
      outcome.code = await printSessionMatches(text, choices, terminal)
    })
  sessions
    .command('delete')
    .description('delete sessions permanently, with all files that no other session uses')
    .argument('<ids...>', 'complete ids, as listed')
    .option('--yes', 'do not ask')
    .action(async (ids: readonly string[], choices: { readonly yes?: boolean }) => {
      const { deleteSessions } = await import('./sessions.ts')
      outcome.code = await deleteSessions(ids, choices, terminal)
    })
}

const addRepair: AddCommand = (program, terminal, outcome) => {
  program
    .command('repair')
    .description('write a clean copy of a damaged session; the session itself is not changed')
    .argument('<file>', 'a session of Tidemark or Claude Code: a file, or the id of an own session')
    .requiredOption('-o, --output <file>', 'the copy; an existing file is never overwritten')
    .option('--json', 'print one JSON value: what was left out, repaired and completed')
    .action(async (file: string, choices: RepairCommandOptions) => {
      const { runRepairCommand } = await import('./repair.ts')
      outcome.code = await runRepairCommand(file, choices, terminal)
    })
}

const addExport: AddCommand = (program, terminal, outcome) => {
  program
    .command('export')
    .description('write a session as Markdown: all messages, with rewrites, tool calls and ids')
    .argument('<file>', 'a session of Tidemark, Claude Code or Codex: a file, or the id of an own session')
    .option('-o, --output <file>', 'a new file; default: standard output')
    .option('--title <text>', 'the heading; default: the id of the session')
    .option('--no-redact', 'do not remove credentials')
    .option(
      '--json',
      'print one JSON value: { records, missingBlobs, markdown }, with -o { path, out, records, missingBlobs }',
    )
    .action(async (file: string, choices: ExportCommandOptions) => {
      const { runExportCommand } = await import('./export.ts')
      outcome.code = await runExportCommand(file, choices, terminal)
    })
}

const addNotes: AddCommand = (program, terminal, outcome) => {
  program
    .command('notes')
    .description(
      'print the notes of a session, kept from its log without a model: task, todos, files, errors',
    )
    .argument('<file>', 'a session of Tidemark, Claude Code or Codex: a file, or the id of an own session')
    .option('--watch', 'print them again whenever they change, until Ctrl-C')
    .option(
      '--json',
      'print one JSON value: { notes, sections, tokens, coveredUuid }; with --watch, one line for each change',
    )
    .action(async (file: string, choices: NotesCommandOptions) => {
      const { runNotesCommand } = await import('./notes.ts')
      outcome.code = await runNotesCommand(file, choices, terminal)
    })
}

const addSimulate: AddCommand = (program, terminal, outcome) => {
  program
    .command('simulate')
    .description("serve the Messages API and OpenAI's APIs, with a scripted model and a working prompt cache")
    .option('--port <number>', 'port to listen on; default: any free port', parsePort)
    .option(
      '--script <file>',
      'a scenario (.yaml, .json), a module (.mjs, .js, .ts) or a name: echo, fix (repairs the sample project), coder, summariser ...',
    )
    .option('--window <tokens>', 'one context window for every model', parseTokenCount)
    .option('--seed <text>', 'the same seed gives the same ids and signatures')
    .option(
      '--keep-requests <number>',
      'requests to keep for /_simulator/requests; default: 200, 0 for none',
      parseWholeNumber,
    )
    .option('--max-body <megabytes>', MAX_BODY_HELP, parseMegabytes)
    .option(
      '--binding <settings>',
      'how thinking is bound: enforced=false,editedText=allow,foreignSignatures=allow',
    )
    .option('--cache-key <settings>', 'what is part of the cache key: betas=false,ttl=true and so on')
    .option('--rules <settings>', 'undocumented rules: firstRole=any')
    .option('--openai <settings>', "how OpenAI's APIs answer: dialect=ollama,overflow=error-event")
    .option('--cached-clearing', 'support cache_edits, which is undocumented and promised by no provider')
    .option('--host <address>', 'address to listen on; default: 127.0.0.1')
    .option('--allow-remote', 'with --host: allow other machines to connect, without a key')
    .option('--json', 'print one line { "url": ..., "openaiUrl": ... } once it listens, and nothing else')
    .action(async (choices: SimulateCommandOptions) => {
      const { runSimulateCommand } = await import('./simulate.ts')
      outcome.code = await runSimulateCommand(choices, terminal)
    })
}

const addWatch: AddCommand = (program, terminal, outcome) => {
  program
    .command('watch')
    .description('stand between an agent and the API on this machine, and show what its requests cost')
    .addOption(
      new Option('--observe', 'change nothing, only record and explain; default: --manage').conflicts(
        'manage',
      ),
    )
    .option('--manage', 'send the requests of a session: cached, cleared and compacted')
    .option('--port <number>', 'port to listen on; default: 8787, 0 for any free port', parsePort)
    .option('--upstream <url>', 'the API to send to; default: https://api.anthropic.com', parseUrl)
    .option(
      '--upstream-openai <url>',
      'where requests of OpenAI clients are sent; default: https://api.openai.com',
      parseUrl,
    )
    .option('--session <id>', 'the session; default: the id that each request names')
    .option('--max-body <megabytes>', MAX_BODY_HELP, parseMegabytes)
    .addOption(
      new Option('--policy <name>', `what to cache, clear and compact: ${POLICY_NAMES}`).conflicts('observe'),
    )
    .option('--window <tokens>', "a context window smaller than the catalogue's", parseTokenCount)
    .option(
      '--dialect <name>',
      'with --upstream-openai and --window: the kind of server, whose models no catalogue has; such as ollama',
    )
    .option(
      '--limit <limits>',
      'what each session may use in all: dollars=5,turns=200,tokens=1000000; then its requests are refused',
      parseLimits,
    )
    .option('--ui', 'also serve the page of the sessions that it records, and print its address')
    .option('--json', 'print one line { "url": ..., "openaiUrl": ... } once it listens, and nothing else')
    .action(async (choices: WatchCommandOptions) => {
      const { runWatchCommand } = await import('./watch.ts')
      outcome.code = await runWatchCommand(choices, terminal)
    })
}

const addSample: AddCommand = (program, terminal) => {
  program
    .command('sample')
    .description('show a sample session three ways: its log, the context of the model, and the request')
    .option('--json', 'print one JSON value: { session, view, request, findings }')
    .action(async (options: { readonly json?: boolean }) => {
      const { runSampleCommand } = await import('./sample.ts')
      runSampleCommand(options, terminal)
    })
}

const addTour: AddCommand = (program, terminal, outcome) => {
  program
    .command('tour')
    .description('see it work: the same job without and with Tidemark, on real files and a simulated model')
    .option('--json', 'print one JSON value: { steps }')
    .option('--resume', 'open the session of the last tour again; it needs no key')
    .option('--or-chat', 'open chat instead, if there is a terminal, and a key in the environment')
    .action(async (options: TourCommandOptions) => {
      const { runTourCommand } = await import('@tidemark/agent/tour')
      outcome.code = await runTourCommand(options, terminal)
    })
}

/**
 * Parses the value of `--since`, after the other options, because its parser is loaded with the command. Throws if it is invalid.
 */
async function parseMoment(text: string, command: Command): Promise<number> {
  const { parseSinceTime } = await import('tidemark/internal')
  return (
    parseSinceTime(text, Date.now()) ??
    command.error(
      `error: option '--since <when>' argument '${text}' is invalid. Expected a span such as 7d or 12h, or a day such as 2026-11-01.`,
    )
  )
}
