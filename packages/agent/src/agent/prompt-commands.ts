/**
 * Skills and slash commands in the agent: their listing, the tool that loads a skill, and prompts such as `/review src`.
 * Shell commands in a file run only if the file is the user's own or the user has trusted exactly that command.
 */

import { existsSync } from 'node:fs'
import { type ContextSource, skillsSource } from 'tidemark'
import {
  createCommandMessage,
  type FoundPromptFile,
  listInvokedSkills,
  type PromptFilePlaces,
  type PromptFiles,
  readPromptFiles,
  skillListingSource,
} from 'tidemark/project'
import { startShellCommand } from '../tools/shell-process.ts'
import { isPathWithin, resolveRealPath } from '../tools/tool-access.ts'
import { cutText, ToolError } from '../tools/tool-definition.ts'
import type { SkillLoader } from '../tools/tool-environment.ts'
import type { TrustItem } from './folder-trust.ts'
import { hashCommandFiles } from './hook-files.ts'
import { decidePermission, findRuleProblem, type PermissionContext } from './permissions.ts'

interface PromptCommandOptions {
  readonly places: PromptFilePlaces
  /** The environment of shell commands. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly context: PermissionContext
  /** Returns true if the user has trusted this part of the project. */
  readonly isTrusted: (item: TrustItem) => boolean
  /** Returns true if the user trusted this part before a file that it runs was changed. */
  readonly wasTrusted: (item: TrustItem) => boolean
}

/** A prompt: its text, or content blocks as the Messages API has them. */
export type AgentPrompt = string | readonly object[]

interface ExpandedPrompt {
  readonly prompt: AgentPrompt
  /** The texts that the user typed; absent if the prompt is a command. */
  readonly typed?: readonly string[]
  /** Sentences for the user: what was not run, and why. */
  readonly notices: readonly string[]
  /** Permission rules of the command, which count until the next prompt. */
  readonly allowed: readonly string[]
  /** The name at the beginning of the prompt, if it looks like a command but no command has that name. */
  readonly unknownCommand?: string
}

/** The skills and slash commands of a session. */
export interface PromptCommands {
  /** What the tool Skill needs; null if the model may not use any skill. */
  readonly skills: SkillLoader | null
  readonly sources: readonly ContextSource[]
  /** Folders of the user's skills, whose files the model may read. */
  readonly skillFolders: readonly string[]
  /** Files that exist and were not read. */
  readonly unread: PromptFiles['unread']
  /** Lists the skills and slash commands as they are now. */
  list(): Promise<readonly FoundPromptFile[]>
  /** Replaces a slash command by the text of its file. Other prompts are returned unchanged. */
  expand(prompt: AgentPrompt, signal?: AbortSignal): Promise<ExpandedPrompt>
}

/** Reads the files once to see which are there. They are read again at each use, so that changes count at once. */
export async function openPromptCommands(options: PromptCommandOptions): Promise<PromptCommands> {
  const { files, unread } = await readPromptFiles(options.places)
  let newest = files
  // This list is made before each request, so it skips the commands.
  const listForModel = async (): Promise<readonly FoundPromptFile[]> => {
    newest = (await readPromptFiles(options.places, 'skill')).files
    return newest.filter(isSkillForModel)
  }
  const hasSkills = files.some(({ kind }) => kind === 'skill')
  return {
    skills: files.some(isSkillForModel)
      ? {
          names: files.filter(isSkillForModel).map(({ name }) => name),
          list: listForModel,
          load: async (name, args, signal) =>
            loadSkill(await listForModel(), name, { args, options, signal }),
        }
      : null,
    sources: hasSkills
      ? [
          skillListingSource(listForModel),
          skillsSource((context) =>
            listInvokedSkills(context, { tool: 'Skill', findPath: (name) => findSkillPath(newest, name) }),
          ),
        ]
      : [],
    skillFolders: files
      .filter(({ kind, origin }) => kind === 'skill' && origin === 'user')
      .map(({ folder }) => folder),
    unread,
    list: async () => (await readPromptFiles(options.places)).files,
    async expand(prompt, signal) {
      const typed = readTypedCommand(prompt)
      const own = { typed: listTexts(prompt) }
      if (typed === null) return { prompt, notices: [], allowed: [], ...own }
      const file = findCommand((await readPromptFiles(options.places)).files, typed.name)
      if (file === null) {
        const unknownCommand = existsSync(`/${typed.name}`) ? {} : { unknownCommand: typed.name }
        return { prompt, notices: [], allowed: [], ...own, ...unknownCommand }
      }
      const { text, notices } = await expandFile(file, { args: typed.args, options, signal })
      const message = createCommandMessage({ name: file.name, args: typed.args }, text)
      const others = typeof prompt === 'string' ? [] : prompt.slice(1)
      return { prompt: [...message, ...others], notices, allowed: listAllowed(file, options) }
    },
  }
}

function isSkillForModel({ kind, isForModel }: FoundPromptFile): boolean {
  return kind === 'skill' && isForModel
}

function findSkillPath(files: readonly FoundPromptFile[], name: string): string | null {
  return files.find((file) => file.kind === 'skill' && file.name === name)?.path ?? null
}

function listTexts(prompt: AgentPrompt): readonly string[] {
  if (typeof prompt === 'string') return [prompt]
  return (prompt as readonly { readonly text?: unknown }[]).flatMap(({ text }) =>
    typeof text === 'string' ? [text] : [],
  )
}

/** Parses a slash command in a prompt: in a text, or in the first block of a list if that block is a text. */
function readTypedCommand(prompt: AgentPrompt): ReturnType<typeof parseSlashCommand> {
  // A text that begins with a space is not a command.
  if (typeof prompt === 'string') return prompt.startsWith(' ') ? null : parseSlashCommand(prompt)
  const [first] = prompt as readonly { readonly type?: unknown; readonly text?: unknown }[]
  return first?.type === 'text' && typeof first.text === 'string' ? parseSlashCommand(first.text) : null
}

/** Finds the file that the user calls by name. The folder of a command may be omitted if the rest of its name is unique. */
function findCommand(files: readonly FoundPromptFile[], name: string): FoundPromptFile | null {
  const own = files.filter(({ isForUser }) => isForUser)
  const inFolders = own.filter((file) => file.kind === 'command' && file.name.endsWith(`:${name}`))
  return own.find((file) => file.name === name) ?? (inFolders.length === 1 ? (inFolders[0] ?? null) : null)
}

interface Expansion {
  readonly args: string
  readonly options: PromptCommandOptions
  readonly signal: AbortSignal | undefined
}

async function loadSkill(
  files: readonly FoundPromptFile[],
  name: string,
  expansion: Expansion,
): Promise<string> {
  const file = files.find((one) => one.name === name)
  if (file === undefined)
    throw new ToolError(`There is no skill ${name}. The skills: ${files.map((one) => one.name).join(', ')}.`)
  const { text } = await expandFile(file, expansion)
  const { args } = expansion
  return args === '' || hasArgumentPlace(file.body) ? text : `${text}\n\nARGUMENTS: ${args}`
}

/** Returns the text of a file, with its arguments and the output of its shell commands inserted. */
async function expandFile(
  file: FoundPromptFile,
  expansion: Expansion,
): Promise<{ readonly text: string; readonly notices: readonly string[] }> {
  const notices: string[] = []
  let text = file.kind === 'skill' ? `The files of this skill are in ${file.folder}.\n\n` : ''
  // Commands are split off before arguments are inserted, so that no argument is ever run.
  for (const part of splitAtShellCommands(file.body)) {
    if ('text' in part) text += expandArguments(part.text, expansion.args)
    else {
      const why = await findShellObjection(file, part.command, expansion.options)
      if (why === null) text += await runShellPart(part.command, expansion)
      else {
        text += `[not run: ${part.command}]`
        notices.push(`/${file.name}: a command was not run (${part.command}): ${why}`)
      }
    }
  }
  return { text: text.trim(), notices }
}

/** Returns why a shell command in a file must not run; null if it may. */
async function findShellObjection(
  { name, origin }: FoundPromptFile,
  command: string,
  { context, isTrusted, wasTrusted }: PromptCommandOptions,
): Promise<string | null> {
  const item = await describeShellItem(name, command, context.folder)
  if (origin === 'project' && !isTrusted(item)) {
    const why = wasTrusted(item) ? 'it has changed since you trusted it' : 'you have not trusted it'
    return `${why}. To see and trust it: tidemark trust`
  }
  // The user who wrote or trusted the file has allowed its commands. Deny and ask rules and plan mode are checked before.
  const { rules } = context
  const allowed = { ...rules, allow: [...rules.allow, `Bash(${command})`] }
  const access = { kind: 'execute', paths: [], command } as const
  const { decision, reason } = decidePermission('Bash', access, {
    folder: context.folder,
    mode: context.mode,
    rules: allowed,
  })
  return decision === 'allow' ? null : reason
}

const SHELL_SECONDS = 60
const OUTPUT_CHARACTERS = 30_000

/** Runs a shell command. Its arguments are passed as `$ARGUMENTS`, `$1` and so on, whose values the shell does not parse. */
async function runShellPart(command: string, { args, options, signal }: Expansion): Promise<string> {
  const env = { ...options.env, ARGUMENTS: args }
  const place = {
    folder: options.context.folder,
    env,
    args: splitCommandArguments(args),
    seconds: SHELL_SECONDS,
  }
  return (await runShellCommand(command, place, signal)).output
}

interface ShellPlace {
  readonly folder: string
  readonly env: PromptCommandOptions['env']
  readonly args?: readonly string[]
  /** Seconds after which the command is stopped. Default: never. */
  readonly seconds?: number
}

/**
 * Runs a shell command to its end, or until it is stopped. The output is cut at `OUTPUT_CHARACTERS`, and says at its end how the
 * command failed. Never throws.
 */
export async function runShellCommand(
  command: string,
  { folder, env, args = [], seconds }: ShellPlace,
  signal?: AbortSignal,
): Promise<{ readonly output: string; readonly isFailed: boolean }> {
  let output = ''
  let shell: ReturnType<typeof startShellCommand> | null = null
  let isLate = false
  const stop = (): void => void shell?.stop()
  const endLate = (): void => {
    isLate = true
    stop()
  }
  const timer = seconds === undefined ? undefined : setTimeout(endLate, seconds * 1000)
  signal?.addEventListener('abort', stop)
  try {
    shell = startShellCommand({
      command,
      cwd: folder,
      env: { ...env },
      cwdFile: '/dev/null',
      args,
      onOutput(text) {
        output = cutText(output + text, OUTPUT_CHARACTERS + 1)
      },
    })
    if (signal?.aborted === true) stop()
    const { code } = await shell.ended
    const cut = output.length > OUTPUT_CHARACTERS ? '\n[cut]' : ''
    const late = isLate ? `\n[stopped after ${seconds} seconds]` : ''
    const failed = code === 0 || isLate ? '' : `\n[exit code ${code ?? 'none'}]`
    return {
      output: `${cutText(output, OUTPUT_CHARACTERS).trimEnd()}${cut}${late}${failed}`,
      isFailed: code !== 0,
    }
  } catch (error) {
    // If the shell cannot be started, the rest of the prompt is still sent.
    return { output: `[failed: ${error instanceof Error ? error.message : String(error)}]`, isFailed: true }
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', stop)
  }
}

// Trust. Each shell command and each allowed tool in a project's files is a separate item.

const SETTING = 'commands'

async function describeShellItem(name: string, command: string, folder: string): Promise<TrustItem> {
  const files = await hashCommandFiles({ command }, folder)
  return { setting: SETTING, parts: [`/${name}:`, command], ...(files.length === 0 ? {} : { files }) }
}

function describeRuleItem(name: string, rule: string): TrustItem {
  return { setting: SETTING, parts: [`/${name}:`, `allows ${rule}`] }
}

/** Returns the rules of a file that count. A rule that cannot be read grants nothing. */
function listAllowed(
  { name, origin, allowedTools }: FoundPromptFile,
  { isTrusted }: PromptCommandOptions,
): readonly string[] {
  const known = allowedTools.filter((rule) => findRuleProblem(rule) === null)
  return origin === 'user' ? known : known.filter((rule) => isTrusted(describeRuleItem(name, rule)))
}

/** Lists the shell commands and allowed tools in the skills and slash commands of a project, for the user to trust. */
export async function listPromptTrustItems(folder: string, home: string): Promise<readonly TrustItem[]> {
  const project = resolveRealPath(folder)
  // In the home folder, these files are the user's own.
  if (project === resolveRealPath(home)) return []
  const isPermitted = (path: string): boolean => isPathWithin(path, project)
  const { files } = await readPromptFiles({ home: null, project, isPermitted })
  const items = files.map(async ({ name, body, allowedTools }) => {
    const commands = splitAtShellCommands(body).flatMap((part) => ('command' in part ? [part.command] : []))
    const shell = await Promise.all(commands.map((command) => describeShellItem(name, command, project)))
    const rules = allowedTools.filter((rule) => findRuleProblem(rule) === null)
    return [...shell, ...rules.map((rule) => describeRuleItem(name, rule))]
  })
  const all = (await Promise.all(items)).flat()
  return [...new Map(all.map((item) => [JSON.stringify(item), item])).values()]
}

// The text of slash commands: what the user typed, and the places for arguments and shell output in a file.

interface TypedCommand {
  /** The name without the slash, such as `review` or `frontend:review`. */
  readonly name: string
  /** Everything after the name, as typed; empty if there is nothing. */
  readonly args: string
}

const COMMAND = /^\/([A-Za-z0-9][\w.:-]*)(?:\s+([\s\S]*))?$/

/** Parses a prompt as a slash command; null if it is not one. A path such as `/etc/hosts` is not a command. */
export function parseSlashCommand(prompt: string): TypedCommand | null {
  const [, name, args = ''] = COMMAND.exec(prompt.trim()) ?? []
  return name === undefined ? null : { name, args: args.trim() }
}

/** Splits arguments at blanks, except in quotes around a word, as in `"two words" name='a b'`. These quotes are removed. */
export function splitCommandArguments(args: string): readonly string[] {
  const words = args.matchAll(/([^\s"']*=)?(?:"([^"]*)"|'([^']*)')(?=\s|$)|(\S+)/g)
  return [...words].map(([, name = '', double, single, plain]) => plain ?? name + (double ?? single ?? ''))
}

/**
 * Replaces `$ARGUMENTS`, `$1`, `$2` and so on by the arguments; a missing argument becomes empty. Inserted text is not searched again, so
 * an argument cannot insert another one.
 */
export function expandArguments(text: string, args: string): string {
  const words = splitCommandArguments(args)
  return text.replace(ARGUMENT, (_, number?: string) =>
    number === undefined ? args : (words[Number(number) - 1] ?? ''),
  )
}

const ARGUMENT = /\$(?:ARGUMENTS\b|([1-9])(?!\d))/g

function hasArgumentPlace(text: string): boolean {
  return new RegExp(ARGUMENT.source).test(text)
}

/** A part of a file: text for the model, or a shell command that is replaced by its output. */
type PromptPart = { readonly text: string } | { readonly command: string }

/**
 * Splits a text at its shell commands: `` !`git status` `` at the start of a line or after a blank, or the lines of a fence that begins
 * with ```` ```! ````. Other fences are examples and contain no commands.
 */
export function splitAtShellCommands(text: string): readonly PromptPart[] {
  const parts: PromptPart[] = []
  let fence = ''
  let script: string[] | null = null
  for (const line of text.match(/[^\n]*\n|[^\n]+$/g) ?? []) {
    const [, mark = '', bang = ''] = /^\s{0,3}(```+|~~~+)(!?)/.exec(line) ?? []
    if (fence === '' && mark !== '') {
      fence = mark
      if (bang === '!') script = []
      else addText(parts, line)
    } else if (fence !== '' && mark.startsWith(fence)) {
      if (script === null) addText(parts, line)
      else parts.push({ command: script.join('').trim() }, { text: '\n' })
      script = null
      fence = ''
    } else if (script !== null) script.push(line)
    else if (fence !== '') addText(parts, line)
    else splitLine(parts, line)
  }
  // A fence that is never closed is not a command.
  if (script !== null) addText(parts, script.join(''))
  return parts
}

function splitLine(parts: PromptPart[], line: string): void {
  let end = 0
  for (const found of line.matchAll(/(?<=^|\s)!`([^`\n]+)`/g)) {
    addText(parts, line.slice(end, found.index))
    parts.push({ command: (found[1] ?? '').trim() })
    end = found.index + found[0].length
  }
  addText(parts, line.slice(end))
}

function addText(parts: PromptPart[], text: string): void {
  const last = parts.at(-1)
  if (last !== undefined && 'text' in last) parts[parts.length - 1] = { text: last.text + text }
  else if (text !== '') parts.push({ text })
}
