/** The events that the tide chart flags: compactions, clearings and cache breaks, each with its request and its price. */
import { formatCount, formatDollars, formatTokens } from '@tidemark/terminal/render/format-numbers'
import type { PageSessionReport } from 'tidemark/report'
import { PROGRAM_NAMES } from './programs.ts'

export interface ChartFlag {
  readonly kind: 'compaction' | 'clearing' | 'break'
  /** Index in `requests` of the report: the request that paid for the event. */
  readonly request: number
  /** The cost of the event; null if it is unknown. */
  readonly usd: number | null
  readonly title: string
  readonly detail: string
  readonly isUndone: boolean
}

/** Lists the flags in order of their requests. */
export function listChartFlags(report: PageSessionReport): readonly ChartFlag[] {
  const flags = [...listCompactions(report), ...listClearings(report), ...listBreaks(report)]
  return flags.toSorted((one, other) => one.request - other.request)
}

/** Returns the index of a request that exists. A rewrite before the first or after the last request is shown at that request. */
function clampRequest({ requests }: PageSessionReport, index: number): number {
  return Math.max(0, Math.min(requests.length - 1, index))
}

function listCompactions(report: PageSessionReport): readonly ChartFlag[] {
  return report.compactions.map(({ afterCall, costUsd, trigger, preTokens, postTokens, isUndone }) => ({
    kind: 'compaction',
    request: clampRequest(report, afterCall),
    usd: costUsd,
    title: `Compaction${trigger === null ? '' : ` (${trigger})`}`,
    detail: `${formatSize(preTokens)} to ${formatSize(postTokens)} tokens${isUndone ? ', undone later' : ''}`,
    isUndone,
  }))
}

function formatSize(tokens: number | null): string {
  return tokens === null ? '?' : formatTokens(tokens)
}

function listClearings(report: PageSessionReport): readonly ChartFlag[] {
  return report.clearings.map(({ afterCall, at, results, savedTokens, by, isUndone }) => {
    const request = clampRequest(report, afterCall)
    const next = report.requests[afterCall]
    const cost = report.clearingCosts.find((each) => each.at === (next?.at ?? at))
    // A clearing without a price of its own cost nothing, if the request after it has one: nothing was processed again.
    const isFree = cost === undefined && next !== undefined && next.costUsd !== null
    return {
      kind: 'clearing',
      request,
      usd: isFree ? 0 : (cost?.costUsd ?? null),
      title: `Cleared ${formatCount(results, 'tool result')}`,
      detail: `by ${nameClearer(by, report)}${savedTokens === null ? '' : `, ${formatTokens(savedTokens)} tokens freed`}${isUndone ? ', undone later' : ''}`,
      isUndone,
    }
  })
}

/** Returns who cleared results. In a log of Tidemark, the host is the application that uses it. */
export function nameClearer(
  by: PageSessionReport['clearings'][number]['by'],
  { format }: Pick<PageSessionReport, 'format'>,
): string {
  if (by === 'tidemark') return 'Tidemark'
  if (by === 'provider') return 'the provider'
  return format === 'tidemark' ? 'the application' : PROGRAM_NAMES[format]
}

/** Breaks of subagents and side calls are left out: they have no request in the chart. The tab Cache lists them. */
function listBreaks(report: PageSessionReport): readonly ChartFlag[] {
  const places = new Map(report.requests.map(({ line }, index) => [line, index]))
  return report.cacheBreaks.flatMap(
    ({ line, agent, source, costUsd, cause, tokensRewritten }): ChartFlag[] => {
      const request = agent === undefined && source === undefined ? places.get(line) : undefined
      if (request === undefined) return []
      return [
        {
          kind: 'break',
          request,
          usd: costUsd,
          title: `Cache break: ${formatBreakCause(cause)}`,
          detail: `${formatTokens(tokensRewritten)} tokens processed again`,
          isUndone: false,
        },
      ]
    },
  )
}

/** The sign of each kind of flag as path data around (0, 0), so that kinds can be told apart without colours. */
export const FLAG_SIGN_PATHS: Readonly<Record<ChartFlag['kind'], string>> = {
  break: 'M-5 -4h10l-5 8z',
  compaction: 'M0 -5.5l5 5.5l-5 5.5l-5 -5.5z',
  clearing: 'M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z',
}

export function formatBreakCause(cause: string): string {
  return cause.replaceAll('-', ' ')
}

/** Returns the label of a flag: its dollars, or `$?` if they are unknown. */
export function formatFlagLabel({ usd }: Pick<ChartFlag, 'usd'>): string {
  return usd === null ? '$?' : formatDollars(usd)
}
