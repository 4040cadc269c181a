/**
 * From what a summariser wrote to the summary: the analysis goes, what is inside the tags stays. Tags that are
 * missing, unclosed, nested or doubled never lose the summary; nothing but analysis is none.
 */
import { sectionsIn } from './sections.ts'

export interface ParsedSummary {
  /** Headed `Summary:`, blank lines squeezed. */
  readonly text: string
  /** How it was marked: by both tags, by the first alone, or not at all. */
  readonly tags: 'closed' | 'open' | 'none'
}

export const SUMMARY_HEADING = 'Summary:'

const OPEN = /<[ \t]*summary(?:[ \t][^<>\n]*)?>/i
const CLOSE = /<[ \t]*\/[ \t]*summary[ \t]*>/i
const ANALYSIS_OPEN = /<[ \t]*analysis(?:[ \t][^<>\n]*)?>/i
const ANALYSIS_CLOSE = /<[ \t]*\/[ \t]*analysis[ \t]*>/i
/** The two blocks as they were asked for: the summary begins where the analysis ends. */
const SEAM = /<[ \t]*\/[ \t]*analysis[ \t]*>\s*(?=<[ \t]*summary(?:[ \t][^<>\n]*)?>)/i

/** Null where there is no summary in it. */
export function parseSummary(text: string): ParsedSummary | null {
  const whole = withoutAnalysis(text)
  const tagged = insideTags(whole)
  const bare = { body: withoutLoneTags(whole), tags: 'none' as const }
  const found = tagged === null || hasMore(bare.body, tagged.body) ? bare : tagged
  const body = tidy(found.body)
  return body === '' ? null : { text: `${SUMMARY_HEADING}\n${body}`, tags: found.tags }
}

/** Tags that were quoted, or belong to some markup of the conversation: most of the summary lies outside them. */
function hasMore(bare: string, tagged: string): boolean {
  return sectionsIn(bare).length > sectionsIn(tagged).length
}

function withoutAnalysis(text: string): string {
  const seam = SEAM.exec(text)
  if (seam !== null && !CLOSE.test(text.slice(0, seam.index))) return text.slice(seam.index + seam[0].length)
  const opens = ANALYSIS_OPEN.exec(text)
  if (opens === null) return behindLoneClose(text)
  const summary = OPEN.exec(text)
  // What opens inside a summary is part of it.
  if (summary !== null && summary.index < opens.index) return text
  return withoutBlock(text, opens.index)
}

/** An analysis whose first tag is missing ends all the same. */
function behindLoneClose(text: string): string {
  const closes = ANALYSIS_CLOSE.exec(text)
  const summary = OPEN.exec(text)
  if (closes === null || (summary !== null && summary.index < closes.index)) return text
  return text.slice(closes.index + closes[0].length)
}

function withoutBlock(text: string, start: number): string {
  const block = text.slice(start)
  const closes = ANALYSIS_CLOSE.exec(block)
  const summary = OPEN.exec(block)
  const rest = closes === null ? '' : block.slice(closes.index + closes[0].length)
  const holdsSummary =
    summary !== null && !OPEN.test(rest) && (closes === null || summary.index < closes.index)
  // Unclosed, or closed too late: the summary that begins inside it ends it.
  if (holdsSummary) return block.slice(summary.index).replace(ANALYSIS_CLOSE, '')
  return `${text.slice(0, start)}\n${rest}`
}

interface Found {
  readonly body: string
  readonly tags: ParsedSummary['tags']
}

/** From the first tag that opens to the last that closes: a summary may quote either. */
function insideTags(text: string): Found | null {
  const opens = OPEN.exec(text)
  if (opens === null) return null
  const behind = text.slice(opens.index + opens[0].length)
  const closes = lastIndexOf(behind, CLOSE)
  if (closes === -1) return { body: withoutLoneTags(behind), tags: 'open' }
  const inside = behind.slice(0, closes)
  return inside.trim() === '' ? null : { body: withoutLoneTags(withoutGaps(inside)), tags: 'closed' }
}

function lastIndexOf(text: string, pattern: RegExp): number {
  let last = -1
  for (const match of text.matchAll(new RegExp(pattern, 'gi'))) last = match.index
  return last
}

/** Between two summaries an analysis may stand. */
function withoutGaps(text: string): string {
  const gap = new RegExp(
    `(${CLOSE.source})\\s*${ANALYSIS_OPEN.source}[\\s\\S]*?${ANALYSIS_CLOSE.source}\\s*(?=${OPEN.source})`,
    'gi',
  )
  return text.replace(gap, '$1\n')
}

/** Tags that stand alone on a line, or at either end, mark something; others are quoted. */
function withoutLoneTags(text: string): string {
  const lone = new RegExp(`^[ \\t]*(?:${TAG}[ \\t]*)+$`, 'gim')
  return withoutTagsAtEnd(withoutTagsAtStart(text.replace(lone, '')))
}

const TAG = `(?:${OPEN.source}|${CLOSE.source})`
const AT_START = new RegExp(`^${TAG}`, 'i')

function withoutTagsAtStart(text: string): string {
  const rest = text.trimStart()
  const tag = AT_START.exec(rest)
  return tag === null ? rest : withoutTagsAtStart(rest.slice(tag[0].length))
}

function withoutTagsAtEnd(text: string): string {
  const rest = text.trimEnd()
  const start = rest.endsWith('>') ? rest.lastIndexOf('<') : -1
  const isTag = start !== -1 && AT_START.exec(rest.slice(start))?.[0].length === rest.length - start
  return isTag ? withoutTagsAtEnd(rest.slice(0, start)) : rest
}

function tidy(text: string): string {
  const lines = text.replace(/\r\n?/g, '\n').split('\n')
  const body = lines
    .map((line) => line.trimEnd())
    .join('\n')
    .trim()
  return body
    .replace(HEADED, '')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

/** The heading, in case the model has written one itself. */
const HEADED = /^(?:#+[ \t]*|\*\*)?summary:(?:\*\*)?(?=\n|$)/i
