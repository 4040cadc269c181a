/** What filled the context: by class, by tool, the largest items, and files read more than once. */
import type { LargeItem, SessionReport, TokensByKind } from 'tidemark'
import { count, percent, tokens, whole } from '../render/figures.ts'
import { bar, heading } from '../render/layout.ts'
import type { Screen } from '../render/screen.ts'
import { cutEnd, cutStart, left, projectPath, right, shown } from '../render/text.ts'

const CLASS_NAMES: Readonly<Record<Exclude<keyof TokensByKind, 'total'>, string>> = {
  toolResults: 'tool results',
  toolRequests: 'tool requests',
  thinking: 'thinking',
  assistantText: 'assistant text',
  human: 'prompts',
  summaries: 'summaries',
  attachments: 'attachments',
  localCommandOutput: 'command output',
  media: 'media',
  other: 'other',
}

const NAME = 16
const FIGURES = 17

export function classes({ tokensByClass }: SessionReport, screen: Screen): readonly string[] {
  const { total, ...parts } = tokensByClass
  if (total === 0) return []
  const rows = Object.entries(parts)
    .filter(([, amount]) => amount > 0)
    .sort(([, one], [, other]) => other - one)
  const most = rows[0]?.[1] ?? 1
  const width = screen.columns - NAME - FIGURES - 2
  return [
    heading('What filled the context', `${tokens(total)} tokens, estimated`, screen),
    ...rows.map(([name, amount]) => {
      const drawn = left(bar(amount / most, width, screen.symbols), width)
      const figures = right(percent(amount / total), 8) + right(tokens(amount), 9)
      return `  ${left(CLASS_NAMES[name as keyof typeof CLASS_NAMES], NAME)}${screen.colors.cyan(drawn)}${figures}`
    }),
  ]
}

const MOST_TOOLS = 8

export function tools({ byTool }: SessionReport, screen: Screen): readonly string[] {
  if (byTool.length === 0) return []
  const shownTools = byTool.slice(0, MOST_TOOLS)
  const most = Math.max(
    1,
    ...shownTools.map(({ requestTokens, resultTokens }) => requestTokens + resultTokens),
  )
  const width = screen.columns - NAME - 29
  const title = left('Tools', screen.columns - 27)
  const columns = right('calls', 9) + right('requests', 9) + right('results', 9)
  const rows = shownTools.map(({ tool, calls, requestTokens, resultTokens }) => {
    const drawn = left(bar((requestTokens + resultTokens) / most, width, screen.symbols), width)
    const name = left(cutEnd(shown(tool), NAME - 1, screen.symbols.more), NAME)
    const figures = right(whole(calls), 9) + right(tokens(requestTokens), 9) + right(tokens(resultTokens), 9)
    return `  ${name}${screen.colors.cyan(drawn)}${figures}`
  })
  return [
    `${screen.colors.bold(title)}${screen.colors.dim(columns)}`,
    ...rows,
    ...more(byTool.length - MOST_TOOLS, 'tool', screen),
  ]
}

const MOST_ITEMS = 8

export function largest(report: SessionReport, screen: Screen): readonly string[] {
  const items = report.largest.slice(0, MOST_ITEMS)
  if (items.length === 0) return []
  const rows = items.map((item) => {
    const name = left(cutEnd(shown(nameOf(item)), NAME - 1, screen.symbols.more), NAME)
    const room = screen.columns - 10 - NAME
    return `${right(tokens(item.tokens), 8)}  ${name}${screen.colors.dim(whatOf(item, report.project, room, screen))}`.trimEnd()
  })
  return [heading('Largest items', 'tokens, estimated', screen), ...rows]
}

function nameOf({ kind, tool }: LargeItem): string {
  if (tool === null) return kind
  return kind === 'request' ? `${tool} (request)` : tool
}

function whatOf({ what }: LargeItem, project: string | null, room: number, { symbols }: Screen): string {
  const isPath = /^[~./\\]|^[A-Za-z]:\\/.test(what) && !what.includes(' ')
  return isPath
    ? cutStart(projectPath(what, project), room, symbols.more)
    : cutEnd(shown(what), room, symbols.more)
}

const MOST_READS = 6

export function readAgain({ duplicateReads, project }: SessionReport, screen: Screen): readonly string[] {
  if (duplicateReads.length === 0) return []
  const wasted = duplicateReads.reduce((sum, read) => sum + read.tokens, 0)
  const rows = duplicateReads.slice(0, MOST_READS).map((read) => {
    const path = cutStart(projectPath(read.path, project), screen.columns - 18, screen.symbols.more)
    return `${right(tokens(read.tokens), 8)}  ${left(`${whole(read.count)}${screen.symbols.times}`, 6)}${screen.colors.dim(path)}`
  })
  return [
    heading(
      'Read again',
      `${count(duplicateReads.length, 'file')}, ${tokens(wasted)} tokens repeated`,
      screen,
    ),
    ...rows,
    ...more(duplicateReads.length - MOST_READS, 'file', screen),
  ]
}

function more(rest: number, what: string, { colors, symbols }: Screen): readonly string[] {
  return rest > 0 ? [colors.dim(`  ${symbols.more} and ${count(rest, what)} more`)] : []
}
