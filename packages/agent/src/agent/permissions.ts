/**
 * Permission rules of the agent: which tool calls run at once, which the user is asked about, and which are refused.
 * A rule is the name of a tool, optionally with a pattern: `Bash(npm test:*)`, `Edit(docs/**)`,
 * `WebFetch(domain:example.com)`, `mcp__files__*`. Deny rules come before ask rules, and ask rules before allow rules.
 */
import { statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, relative, resolve, sep } from 'node:path'
import { compileGlob, MAX_GLOB_CHARACTERS } from 'tidemark/tools'
import type { Sandbox } from '../sandbox/sandbox.ts'
import { MAX_COMMAND_BYTES, quoteForShell } from '../tools/shell-process.ts'
import {
  AGENT_TOOL_NAMES,
  isPathWithin,
  MAX_PATH_CHARACTERS,
  matchesToolName,
  resolveRealPath,
  type ToolAccess,
} from '../tools/tool-access.ts'
import { compareWithRestriction, type RestrictionVerdict } from './command-restrictions.ts'
import {
  type AnalyzedCommand,
  allowsCommand,
  analyzeCommand,
  type CommandPlace,
  suggestCommandPatterns,
} from './command-rules.ts'
import { findProtectedPath, isProtectedName, isReachedByProtectedName } from './protected-paths.ts'

export interface PermissionRules {
  readonly allow: readonly string[]
  readonly ask: readonly string[]
  readonly deny: readonly string[]
}

/** Also the defaults for lists that settings leave out. */
export const NO_RULES: PermissionRules = { allow: [], ask: [], deny: [] }

/**
 * What happens to calls that no rule mentions. `default`: reading in the working directory is allowed, everything else
 * is asked. `accept-edits`: editing files in the working directory is allowed too. `allow-all`: everything is allowed, except writing
 * protected paths. `plan`: as `default`, but no file is changed and nothing is run, whatever rules allow it.
 */
export type PermissionMode = 'default' | 'accept-edits' | 'allow-all' | 'plan'

export const PERMISSION_MODES: readonly PermissionMode[] = ['default', 'accept-edits', 'allow-all', 'plan']

/** The modes as the user sees them beside the input; the default one is not shown. */
export const MODE_LABELS: Readonly<Record<PermissionMode, string | null>> = {
  default: null,
  'accept-edits': 'edits allowed',
  'allow-all': 'everything allowed',
  plan: 'plan mode',
}

/** What decides about tool calls, besides the call itself. Read anew at each call, because rules and mode may change. */
export interface PermissionContext {
  readonly rules: PermissionRules
  readonly mode: PermissionMode
  /** The working directory, with symbolic links resolved. */
  readonly folder: string
  /** Folders outside the working directory that the agent may read, such as that of its own outputs. */
  readonly readableFolders?: readonly string[]
  /** Files and folders that the agent may write only if a rule names them exactly, such as scripts of hooks. */
  readonly guardedPaths?: readonly string[]
  /** Folders of this program, protected in addition to the paths that are always protected. */
  readonly protectedFolders?: readonly string[]
  /** Allow rules of the user's own settings. Only these can make an exception for a protected path. */
  readonly ownRules?: readonly string[]
  readonly home?: string
  /** Returns an untrusted program that repositories in these folders make Git run; null if there is none. */
  readonly findGitProgram?: (folders: readonly string[]) => string | null
  /** Confines commands, which then need no question. If omitted, commands are not confined. */
  readonly sandbox?: Sandbox | undefined
}

interface PermissionDecision {
  readonly decision: 'allow' | 'ask' | 'deny'
  /** The reason, as a sentence for the user and the model. */
  readonly reason: string
  /** Rules that together would allow the call. Empty if it is allowed, or if no allow rule could change the decision. */
  readonly suggestions: readonly string[]
}

interface ParsedRule {
  readonly text: string
  readonly tool: string
  /** The text between the parentheses; null for a rule about the whole tool. */
  readonly pattern: string | null
}

/**
 * Decides about one call of a tool. The order: size limits, deny rules, plan mode, ask rules, protected paths, the sandbox, allow
 * rules, rules that the command may hide, `allow-all`, programs of Git, paths outside the folder, guarded files, the permission
 * mode. Reads the disk, to follow links and to find programs that Git would run.
 */
export function decidePermission(
  tool: string,
  access: ToolAccess,
  context: PermissionContext,
): PermissionDecision {
  if (access.paths.some((path) => path.length > MAX_PATH_CHARACTERS))
    return { decision: 'deny', reason: LONG_PATH_REASON, suggestions: [] }
  if (Buffer.byteLength(access.command ?? '') > MAX_COMMAND_BYTES)
    return { decision: 'deny', reason: LONG_COMMAND_REASON, suggestions: [] }
  const { deny, ask, allow } = context.rules
  const read = access.command === undefined ? null : analyzeCommand(access.command)
  const call = { tool, access, context, read }
  const denied = deny.find((rule) => matchesAnyPart(rule, call))
  if (denied !== undefined)
    return { decision: 'deny', reason: `The rule ${denied} forbids it.`, suggestions: [] }
  if (context.mode === 'plan') {
    if (tool === PLAN_TOOL)
      return { decision: 'ask', reason: 'The plan needs the approval of the user.', suggestions: [] }
    const isForbidden =
      access.kind === 'server' ? access.isReadOnly !== true : CHANGING_KINDS.has(access.kind)
    if (isForbidden) return { decision: 'deny', reason: PLAN_REASON, suggestions: [] }
  }
  const suggestions = suggestRules(call)
  const asked = ask.find((rule) => matchesAnyPart(rule, call))
  if (asked !== undefined)
    return { decision: 'ask', reason: `The rule ${asked} asks first.`, suggestions: [] }
  const kept = access.kind === 'write' ? findProtected(call) : undefined
  if (kept !== undefined)
    return { decision: 'ask', reason: `${kept} is protected: ${PROTECTED_REASON}`, suggestions: [] }
  if (context.sandbox !== undefined && tool === 'Bash')
    return access.isOutside === true
      ? { decision: 'ask', reason: 'It runs outside the sandbox.', suggestions: [] }
      : { decision: 'allow', reason: 'It runs in the sandbox.', suggestions: [] }
  const outside = access.paths.find((path) => !isReadableHere(path, access, context))
  const guarded = access.kind === 'write' ? access.paths.find((path) => isGuarded(path, context)) : undefined
  const hidden = findHidingRule(call)
  const program = findGitProgram(call)
  if (program === null && matchesWholeCall(allow, call, (outside ?? guarded ?? hidden) === undefined))
    return { decision: 'allow', reason: 'A rule allows it.', suggestions: [] }
  if (hidden !== undefined)
    return { decision: 'ask', reason: `Its words do not tell whether ${hidden} covers it.`, suggestions }
  if (context.mode === 'allow-all')
    return { decision: 'allow', reason: 'Everything is allowed.', suggestions: [] }
  if (program !== null)
    return { decision: 'ask', reason: `Git would run ${program}, ${GIT_REASON}`, suggestions: [] }
  if (outside !== undefined)
    return { decision: 'ask', reason: `${outside} is outside the working directory.`, suggestions }
  if (guarded !== undefined)
    return { decision: 'ask', reason: `${guarded} decides what runs on this machine.`, suggestions }
  if (access.kind === 'none' || access.kind === 'read')
    return { decision: 'allow', reason: 'It only reads.', suggestions: [] }
  if (access.kind === 'write' && context.mode === 'accept-edits')
    return { decision: 'allow', reason: 'Edits in the working directory are allowed.', suggestions: [] }
  return { decision: 'ask', reason: ASK_REASONS[access.kind], suggestions }
}

/** The text for the model after the user refused a call; what the user said follows it. */
export const REFUSED_BY_USER = 'The user refused it.'
/** The tool with which the model submits a plan. */
export const PLAN_TOOL = 'ExitPlanMode'
const CHANGING_KINDS: ReadonlySet<ToolAccess['kind']> = new Set(['write', 'execute'])
const PLAN_REASON = 'Plan mode is on: nothing is changed or run before the user has approved a plan.'

const LONG_PATH_REASON = `No file has a path of more than ${MAX_PATH_CHARACTERS} characters.`

const LONG_COMMAND_REASON = `No shell can be started with a command of more than ${MAX_COMMAND_BYTES.toLocaleString('en-GB')} bytes. Write it to a file with Write, and run that.`

/** Returns true for a reason that a permission question need not state, because it shows the call itself. */
export function isReasonInQuestion(reason: string): boolean {
  return Object.values<string>(ASK_REASONS).includes(reason)
}

const ASK_REASONS = {
  write: 'It changes a file.',
  execute: 'It runs a command.',
  network: 'It fetches from the network.',
  server: 'It calls an MCP server.',
} as const

function isReadableHere(path: string, { kind }: ToolAccess, context: PermissionContext): boolean {
  if (isPathWithin(path, context.folder)) return true
  return kind === 'read' && (context.readableFolders ?? []).some((folder) => isPathWithin(path, folder))
}

const PROTECTED_REASON =
  'it decides what runs on this machine. Only permissions.allow of your own settings can except it.'

/** Returns the protected path that a call would write; undefined if there is none or if the user's settings make an exception. */
function findProtected({ tool, access, context }: CheckedCall): string | undefined {
  const { ownRules = [], protectedFolders = [] } = context
  const place = { ...context, home: context.home ?? homedir(), protectedFolders }
  const found = findProtectedPath([...access.paths, ...(access.namedPaths ?? [])], place)
  if (found === undefined) return undefined
  const isNamed = ownRules.some((text) => {
    const rule = parseRule(text)
    if (rule?.pattern == null || !coversTool(rule, tool)) return false
    const { pattern } = rule
    const named = resolvePattern(pattern, context)
    // A rule such as Edit(**) matches the path without naming it, so it is no exception.
    if (named !== found && !isProtectedName(named, place) && !isReachedByProtectedName(named, place))
      return false
    return access.paths.every((path) => matchesPath(pattern, path, context))
  })
  return isNamed ? undefined : found
}

/** Returns true if a path has a protected name and no rule of the user's settings makes an exception. Links are not followed. */
export function isProtectedByName(path: string, context: PermissionContext): boolean {
  const place = { ...context, home: context.home ?? homedir(), protectedFolders: [] }
  if (!isProtectedName(path, place)) return false
  return (
    findProtected({ tool: 'Edit', access: { kind: 'write', paths: [path] }, context, read: null }) !==
    undefined
  )
}

const GIT_REASON =
  'which this repository names and you have not trusted. To see and trust it: tidemark trust.'

/**
 * Returns an untrusted program that Git would run, if a rule allows the command; null if there is none. Not checked if the mode or a rule
 * for all of `Bash` allows everything.
 */
function findGitProgram(call: CheckedCall): string | null {
  const { context, access } = call
  const words = (call.read?.parts ?? []).flatMap((part) => part.words.map(({ text }) => text))
  // Checked in the parsed words, too: in the raw text, a quote or an escaped line end may split the name.
  const isGit = [access.command ?? '', ...words].some((text) => /git/i.test(text))
  if (context.findGitProgram === undefined || !isGit) return null
  const isWhole = context.rules.allow.some((text) => {
    const rule = parseRule(text)
    return rule?.pattern === null && coversTool(rule, call.tool)
  })
  if (isWhole) return null
  const start = access.folder ?? context.folder
  // Folders that `cd` or an option such as `-C` may lead to.
  const named = words.map((text) => resolve(start, text)).filter(isFolder)
  return context.findGitProgram([start, ...named.slice(0, MOST_NAMED_FOLDERS)])
}

const MOST_NAMED_FOLDERS = 200

function isFolder(path: string): boolean {
  return (
    path.length <= MAX_PATH_CHARACTERS && statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
  )
}

/** Returns a deny or ask rule that cannot be checked, because the command hides what it runs; undefined if there is none. */
function findHidingRule(call: CheckedCall): string | undefined {
  const { deny, ask } = call.context.rules
  return [...deny, ...ask].find((text) => judgeCommand(text, call) === 'hides')
}

function judgeCommand(text: string, { tool, read }: CheckedCall): RestrictionVerdict {
  const rule = read === null ? null : parseRule(text)
  if (read === null || rule?.pattern == null || !coversTool(rule, tool)) return null
  return compareWithRestriction(rule.pattern, read)
}

function isGuarded(path: string, { guardedPaths = [] }: PermissionContext): boolean {
  return guardedPaths.some((guarded) => isPathWithin(path, guarded))
}

/** Returns false if a rule such as `Edit(**)` only matches a guarded file without naming it. */
function mayNameGuarded(pattern: string, path: string, { access, context }: CheckedCall): boolean {
  if (access.kind !== 'write' || !isGuarded(path, context)) return true
  return resolvePattern(pattern, context) === path
}

/** Returns what is wrong with a rule, as a part of a sentence; null if the rule is valid. */
export function findRuleProblem(rule: unknown): string | null {
  if (typeof rule !== 'string') return `expected text such as Bash(npm test:*), found ${JSON.stringify(rule)}`
  const parsed = parseRule(rule)
  if (parsed !== null) {
    const { tool, pattern } = parsed
    // The meaning of such a tool's input is unknown, so a deny rule with a pattern would deny nothing.
    if (tool.startsWith('mcp__') && pattern !== null)
      return `a rule for tools of MCP servers has no pattern; expected ${tool}, found ${JSON.stringify(rule)}`
    const problem = pattern === null ? null : findPatternProblem(tool, pattern)
    if (problem !== null) return `${problem}; found ${JSON.stringify(rule)}`
    const isKnown = AGENT_TOOL_NAMES.includes(tool) || tool.includes('*') || tool.startsWith('mcp__')
    return isKnown ? null : `there is no tool ${tool}; the tools are ${AGENT_TOOL_NAMES.join(', ')}`
  }
  return `cannot read the rule ${JSON.stringify(rule)}; expected a tool such as Read, or Tool(pattern)`
}

/** Tools whose patterns are compared with a text. Patterns of other tools are globs. */
const TOOLS_WITH_TEXTS: readonly string[] = ['Bash', 'Skill', 'Task']

/** Returns why a pattern would match nothing, or other files than it seems to. Otherwise a deny rule could deny less than it says. */
function findPatternProblem(tool: string, pattern: string): string | null {
  if (pattern.length > MAX_GLOB_CHARACTERS)
    return `a pattern has at most ${MAX_GLOB_CHARACTERS} characters, not ${pattern.length}`
  if (TOOLS_WITH_TEXTS.includes(tool)) return null
  if (/[?*+@!]\(/.test(pattern)) return 'alternatives are written as {a,b}; @(a|b) and the like are not known'
  return compileGlob(pattern) === null ? 'the braces of the pattern list too many alternatives' : null
}

function parseRule(text: string): ParsedRule | null {
  const found = /^([A-Za-z_*][\w*-]*)(?:\((.*)\))?$/s.exec(text.trim())
  const [, tool, pattern] = found ?? []
  if (tool === undefined || pattern === '') return null
  return { text, tool, pattern: pattern === undefined || pattern === '*' ? null : pattern }
}

/** Returns true if a deny or ask rule has a pattern for files to read, so that a search must check each file. */
export function hasReadRestrictions({ deny, ask }: PermissionRules): boolean {
  return [...deny, ...ask].some((text) => {
    const rule = parseRule(text)
    if (rule === null || rule.pattern === null) return false
    return coversTool(rule, 'Grep') || coversTool(rule, 'Glob')
  })
}

interface CheckedCall {
  readonly tool: string
  readonly access: ToolAccess
  readonly context: PermissionContext
  /** The parsed command; null if the call runs none. */
  readonly read: AnalyzedCommand | null
}

/** Returns true if an ask or deny rule matches any part of the call. */
function matchesAnyPart(text: string, call: CheckedCall): boolean {
  const rule = parseRule(text)
  if (rule === null || !coversTool(rule, call.tool)) return false
  if (rule.pattern === null) return true
  const { access, context } = call
  if (call.read !== null) return compareWithRestriction(rule.pattern, call.read) === 'covers'
  if (access.url !== undefined) return matchesUrl(rule.pattern, access.url)
  // A deny rule for .env also matches .ENV, which is the same file on some file systems.
  const spellings = [
    { pattern: rule.pattern, place: context, write: (path: string) => path },
    { pattern: foldCase(rule.pattern), place: foldPlace(context), write: foldCase },
  ]
  const isCovered = (path: string): boolean =>
    spellings.some(
      ({ pattern, place, write }) =>
        matchesPath(pattern, write(path), place) || hasName(pattern, write(path), place),
    )
  return (
    [...access.paths, ...(access.namedPaths ?? [])].some(isCovered) ||
    leadsInto(rule.pattern, access, context)
  )
}

/**
 * Returns true if allow rules together match every part of the call. A rule without a pattern is limited to the working directory; other
 * paths must be named.
 */
function matchesWholeCall(texts: readonly string[], call: CheckedCall, isInFolder: boolean): boolean {
  const { tool, access, context, read } = call
  const rules = texts.flatMap((text) => parseRule(text) ?? []).filter((rule) => coversTool(rule, tool))
  if (isInFolder && rules.some(({ pattern }) => pattern === null)) return true
  const patterns = rules.flatMap(({ pattern }) => pattern ?? [])
  if (patterns.length === 0) return false
  if (read !== null) return allowsCommand(patterns, read, findPlace(access, context))
  if (access.url !== undefined) return patterns.some((pattern) => matchesUrl(pattern, access.url ?? ''))
  return (
    access.paths.length > 0 &&
    access.paths.every((path) =>
      patterns.some(
        (pattern) =>
          matchesPath(pattern, path, context) && (isInFolder || mayNameGuarded(pattern, path, call)),
      ),
    )
  )
}

/** Tools that a rule for another tool covers: permission to edit a file includes writing it. */
const COVERED_TOOLS: Readonly<Record<string, readonly string[]>> = {
  Edit: ['Edit', 'Write', 'MultiEdit'],
  Read: ['Read', 'Grep', 'Glob'],
  Bash: ['Bash'],
}

function coversTool({ tool }: ParsedRule, name: string): boolean {
  return COVERED_TOOLS[tool]?.includes(name) === true || matchesToolName(tool, name)
}

function matchesUrl(pattern: string, url: string): boolean {
  const domain = pattern.startsWith('domain:') ? pattern.slice('domain:'.length).toLowerCase() : null
  const parsed = URL.canParse(url) ? new URL(url) : null
  // Compared in the form in which it is fetched: in `https://other.com?.example.com/`, the host ends at the question mark.
  if (domain === null) return compileGlob(pattern)?.((parsed?.href ?? url).split('/')) === true
  const host = (parsed?.hostname ?? '').toLowerCase().replace(/\.$/, '')
  return domain.startsWith('*.') ? host.endsWith(domain.slice(1)) : host === domain
}

/** Normalizes a path or pattern for file systems that ignore case and the encoding of accents. */
function foldCase(text: string): string {
  return text.normalize('NFC').toUpperCase().toLowerCase()
}

function foldPlace({ folder, home = homedir(), ...rest }: PermissionContext): PermissionContext {
  return { ...rest, folder: foldCase(folder), home: foldCase(home) }
}

/** Matches a path with a glob: relative to the working directory, or absolute, or from the home with `~/`. */
function matchesPath(pattern: string, path: string, context: PermissionContext): boolean {
  const glob = resolvePattern(pattern, context)
  if (isPathWithin(path, glob.replace(/\/\*\*$/, '/'))) return true
  const { folder } = context
  // The working directory's name is compared literally, even if it contains brackets or stars.
  return isPathWithin(glob, folder)
    ? isPathWithin(path, folder) && isGlobMatch(relative(folder, path), relative(folder, glob))
    : isGlobMatch(path, glob)
}

/** Returns true if a pattern is a bare name, such as `.env`, and the path has it at any depth. */
function hasName(pattern: string, path: string, { folder }: PermissionContext): boolean {
  if (pattern.includes('/')) return false
  const names = (isPathWithin(path, folder) ? relative(folder, path) : path).split(sep)
  return names.some((name) => isGlobMatch(name, pattern))
}

function isGlobMatch(path: string, glob: string): boolean {
  const matches = compileGlob(sep === '/' ? glob : glob.replaceAll(sep, '/'))
  return matches?.(path.split(sep)) === true
}

function resolvePattern(pattern: string, { folder, home = homedir() }: PermissionContext): string {
  return pattern.startsWith('~/') ? join(home, pattern.slice(2)) : resolve(folder, pattern)
}

/** Returns true if the file or folder in a rule is a symbolic link, and the call accesses the place it leads to. */
function leadsInto(pattern: string, { paths }: ToolAccess, context: PermissionContext): boolean {
  const target = resolveRealPath(resolvePattern(pattern, context).replace(/\/\*\*$/, ''))
  return paths.some((path) => isPathWithin(path, target))
}

function findPlace({ folder }: ToolAccess, context: PermissionContext): CommandPlace {
  return { start: folder ?? context.folder, folder: context.folder }
}

/** Returns rules that together would allow calls like this one; empty if every such rule would allow too much. */
function suggestRules({ tool, access, context, read }: CheckedCall): readonly string[] {
  const { folder, rules } = context
  if (read !== null) {
    const own = rules.allow.flatMap((text) => parseRule(text) ?? []).filter((rule) => coversTool(rule, tool))
    const patterns = own.flatMap(({ pattern }) => pattern ?? [])
    return suggestCommandPatterns(read, findPlace(access, context), patterns).map(
      (pattern) => `${tool}(${pattern})`,
    )
  }
  if (access.url !== undefined && URL.canParse(access.url))
    return [`${tool}(domain:${new URL(access.url).hostname})`]
  const path = access.paths[0]
  const rule = access.kind === 'write' ? 'Edit' : tool
  if (path === undefined) return [rule]
  if (isPathWithin(path, folder) && !(access.kind === 'write' && isGuarded(path, context))) return [rule]
  // In a rule, the special characters of such a path would be a pattern.
  return /[*?[\]{}()|!@+]/.test(path) ? [] : [`${rule}(${path})`]
}

/** Formats rules as the option `--allowed-tools` of the command line, quoted for a shell. */
export function formatAllowedToolsOption(rules: readonly string[]): string {
  return `--allowed-tools ${rules.map(quoteForShell).join(' ')}`
}
