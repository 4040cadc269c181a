/** Looks a truth up in the text of the notes, by the rules of docs/notes-exam.md: sections, quotes, cut and redacted text. */

import { squeeze } from './exam-truth.ts'

const HEADINGS = [
  'Session title',
  'Current state',
  'Task specification',
  'Files and functions',
  'Workflow',
  'Errors and corrections',
  'Codebase and system documentation',
  'Learnings',
  'Key results',
  'Worklog',
]

/** The lines below a heading up to the next of the ten headings. */
export function readSection(notes: string, heading: string): readonly string[] {
  const lines = notes.split(/\r?\n/)
  const start = lines.findIndex((line) => line.trim() === `# ${heading}`)
  if (start < 0) return []
  const rest = lines.slice(start + 1)
  const end = rest.findIndex((line) => HEADINGS.some((other) => line.trim() === `# ${other}`))
  return end < 0 ? rest : rest.slice(0, end)
}

/** The quotes below a label, each without its `> `, with its line breaks. */
export function readQuotes(section: readonly string[], label: string): readonly string[] {
  const start = section.findIndex((line) => line.replace(/[*_]/g, '').trim().startsWith(label))
  if (start < 0) return []
  const quotes: string[][] = []
  let isOpen = false
  for (const line of section.slice(start + 1)) {
    const isQuoted = /^>(?: |$)/.test(line)
    if (isQuoted && isOpen) quotes.at(-1)?.push(line.slice(2))
    else if (isQuoted) quotes.push([line.slice(2)])
    isOpen = isQuoted
  }
  return quotes.map((lines) => lines.join('\n'))
}

/** How much of a text must be left if it is cut: its first `head` characters, `…`, and its last `tail` characters. */
export interface CutRule {
  readonly head: number
  readonly tail: number
}

/** Returns true if the noted text is the truth, or the truth cut by the rule. Whitespace and redacted parts aside. */
export function isNoted(noted: string, truth: string, { head, tail }: CutRule): boolean {
  const text = squeeze(noted)
  const whole = squeeze(truth)
  if (matchesWhole(text, whole)) return true
  if (truth.length <= head + tail) return false
  // One character less, so that a cut need not split a pair of surrogates.
  const least = squeeze(truth.slice(0, head - 1)).length
  const leastEnd = tail === 0 ? 0 : squeeze(truth.slice(1 - tail)).length
  return listCuts(text).some(([start, end]) => {
    if (tail === 0 && end !== '') return false
    const hasParts = toPattern(start, '^', '').test(whole) && toPattern(end, '', '$').test(whole)
    return hasParts && isLongEnough(start, least) && isLongEnough(end, leastEnd)
  })
}

/** The text before and after each `…`. */
function listCuts(text: string): readonly (readonly [start: string, end: string])[] {
  return [...text.matchAll(/…/g)].map(({ index }) => [
    text.slice(0, index).trim(),
    text.slice(index + 1).trim(),
  ])
}

/** What a secret took up is not known, so half is enough where one was redacted. */
function isLongEnough(part: string, least: number): boolean {
  return part.length >= (REDACTED.test(part) ? least / 2 : least)
}

const REDACTED = /\[redacted[^\]]*\]/i

/** Returns true if the noted text is the truth, where `[redacted …]` in it may stand for anything. */
export function matchesWhole(noted: string, truth: string): boolean {
  return noted === truth || (REDACTED.test(noted) && toPattern(noted, '^', '$').test(truth))
}

function toPattern(noted: string, before: string, after: string): RegExp {
  const parts = noted.split(/\[redacted[^\]]*\]/gi).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`${before}${parts.join('[\\s\\S]+?')}${after}`)
}
