/**
 * The permission question for a tool call, the same on the screen and on a plain terminal. Nothing that would run or be written is left out
 * or hidden.
 */
import { existsSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { escapeForApproval, escapeLinesForApproval, hasHiddenCharacter } from '@tidemark/terminal/render/text'
import type { AskPermission } from '../agent/agent-options.ts'
import { isReasonInQuestion, PLAN_TOOL } from '../agent/permissions.ts'
import { isPathWithin } from '../tools/tool-access.ts'
import { type DiffLine, formatLinePrefixes } from './line-diff.ts'
import { computeCallChange } from './tool-views.ts'

export type PermissionRequest = Parameters<AskPermission>[0]

interface PermissionView {
  /** The question, such as `Run this command?` */
  readonly title: string
  /** The change of a file; null for other calls. */
  readonly change: readonly DiffLine[] | null
  /** The whole command or call; empty if there is a change. */
  readonly text: string
  /** Why the user is asked, if the question itself does not show it. */
  readonly reason: string
  /** Says that control and invisible characters are shown as codes; empty if there are none. */
  readonly warning: string
}

/** Returns the parts of the permission question. For an edit, the file is read to show the lines around the change. */
export function createPermissionView(request: PermissionRequest, folder: string): PermissionView {
  const { tool, reason, agent } = request
  const input = request.input as Readonly<Record<string, unknown>>
  const isPlan = tool === PLAN_TOOL && typeof input.plan === 'string'
  const change = computeCallChange(tool, input, { folder, withFile: true })
  const asker = agent === undefined ? '' : `The agent ${escapeForApproval(agent)} asks: `
  // Changes are compared by lines, so line ends do not count as hidden characters.
  const isHiding = (text: string): boolean =>
    hasHiddenCharacter(change === null ? text : text.replaceAll('\r\n', '\n'))
  return {
    title: `${asker}${describeQuestion(request, folder)}`,
    change,
    text:
      change !== null ? '' : isPlan ? escapeLinesForApproval(String(input.plan)) : formatInput(tool, input),
    reason: isPlan || isReasonInQuestion(reason) ? '' : escapeForApproval(reason),
    warning: listTexts(input).some(isHiding) ? HIDDEN_WARNING : '',
  }
}

/** Formats the question as uncoloured lines for a plain terminal, which wraps long ones. */
export function formatPermissionQuestion(request: PermissionRequest, folder: string): string {
  const { title, change, text, reason, warning } = createPermissionView(request, folder)
  const starts = formatLinePrefixes(change ?? [])
  const diff = (change ?? []).map((line, index) => `${starts[index] ?? ''}${line.text}`)
  const body = change === null ? text.split('\n').map((line) => `  ${line}`) : diff
  const notes = [warning, reason].filter((note) => note !== '').map((note) => `  ${note}`)
  return [title, ...body, ...notes].join('\n')
}

const HIDDEN_WARNING = 'Control characters and invisible ones are shown as codes: \\u{…}.'

function listTexts(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, each]) => [name, ...listTexts(each)])
}

function describeQuestion({ tool, input: given, folder: place }: PermissionRequest, folder: string): string {
  const input = given as Readonly<Record<string, unknown>>
  const read = (field: string): string => (typeof input[field] === 'string' ? String(input[field]) : '')
  const path = read('file_path') || read('path') || read('notebook_path')
  const file = path === '' ? 'the folder' : showPath(path, folder)
  switch (tool) {
    case PLAN_TOOL:
      return 'Carry out this plan?'
    case 'Bash': {
      const where = place === undefined ? '' : ` in ${showPath(place, folder)}`
      return `Run this command${where}${input.run_in_background === true ? ' in the background' : ''}?`
    }
    case 'Write':
    case 'Edit':
    case 'MultiEdit':
      return `${existsSync(resolve(folder, path)) ? 'Change' : 'Create'} ${file}?`
    case 'Read':
      return `Read ${file}?`
    case 'Grep':
    case 'Glob':
      return `Search in ${file}?`
    case 'WebFetch':
      return 'Fetch this page?'
    case 'Skill':
      return 'Use this skill?'
    case 'Task':
      return 'Start this agent?'
    default: {
      const [, server, name] = /^mcp__(.+?)__(.+)$/.exec(tool) ?? []
      return server === undefined
        ? `Call ${escapeForApproval(tool)}?`
        : `Call ${escapeForApproval(name ?? '')} of the MCP server ${escapeForApproval(server)}?`
    }
  }
}

/** Shows a path relative to the folder, with every character visible. */
function showPath(path: string, folder: string): string {
  const absolute = resolve(folder, path)
  return escapeForApproval(isPathWithin(absolute, folder) ? relative(folder, absolute) || '.' : path)
}

/** Shows a command exactly as it will run, with its line ends. Other inputs are shown as fields, with later lines indented. */
function formatInput(tool: string, input: Readonly<Record<string, unknown>>): string {
  if (tool === 'Bash' && typeof input.command === 'string') return escapeLinesForApproval(input.command)
  return Object.entries(input)
    .map(([name, value]) => {
      const text = escapeLinesForApproval(typeof value === 'string' ? value : JSON.stringify(value))
      return `${escapeForApproval(name)}: ${text.replaceAll('\n', '\n    ')}`
    })
    .join('\n')
}
