/** The first sentence of what a file says about itself: the comment at its top, or on the first thing it declares. */
import ts from 'typescript'
import { parse, type Source } from './source.ts'

export function headerOf(source: Source): string | null {
  const file = parse(source)
  const places = [0, ...file.statements.map((statement) => statement.getFullStart())]
  for (const place of places) {
    const comment = ts.getLeadingCommentRanges(source.text, place)?.[0]
    if (comment !== undefined) return firstSentence(source.text.slice(comment.pos, comment.end))
  }
  return null
}

function firstSentence(comment: string): string {
  const text = comment
    .replace(/^\/\*\*?|\*\/$|^\/\//g, '')
    .replace(/\n\s*\* ?/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  const end = /[.!?](?= [A-Z`]|$)/.exec(text)
  return lowered(shortened(end === null ? text : text.slice(0, end.index)))
}

const LONGEST = 110

/** A long sentence up to the last pause that leaves it short enough. */
function shortened(sentence: string): string {
  if (sentence.length <= LONGEST) return sentence
  const pauses = [...sentence.matchAll(/[:;,]? \(|[:;,] /g)].map((pause) => pause.index)
  const cut = pauses.filter((index) => index <= LONGEST && !isInBrackets(sentence, index)).at(-1)
  return cut === undefined ? sentence : sentence.slice(0, cut)
}

function isInBrackets(text: string, index: number): boolean {
  const before = text.slice(0, index)
  return before.split('(').length > before.split(')').length
}

/** `A list …` → `a list …`; names and code keep their case. */
function lowered(text: string): string {
  const first = /^(?:[A-Z]|[A-Z][a-z]+(?:-[a-z]+)*)(?=[ ,:;]|$)/.exec(text)?.[0]
  return first === undefined || NAMES.has(first) ? text : text.charAt(0).toLowerCase() + text.slice(1)
}

const NAMES = new Set(['Anthropic', 'Claude', 'Google', 'Node', 'Tidemark'])
