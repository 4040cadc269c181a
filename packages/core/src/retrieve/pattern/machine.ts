/**
 * A regular expression as a machine that walks a line once, in all of its states side by side: the time it takes is
 * the length of the line times the number of states, whatever the pattern. A backtracking one may take for ever.
 */
import { type CharacterTest, isWord, type Node, PatternProblem } from './syntax.ts'

type Step =
  | { readonly kind: 'character'; readonly accepts: CharacterTest; readonly next: number }
  | { readonly kind: 'place'; readonly place: 'start' | 'end' | 'word-edge'; readonly next: number }
  | { readonly kind: 'fork'; next: readonly number[] }
  | { readonly kind: 'done' }

export interface Machine {
  readonly steps: readonly Step[]
  readonly start: number
}

export const MOST_STATES = 400

/** Throws a `PatternProblem` where it would have too many states. */
export function buildMachine(node: Node): Machine {
  const steps: Step[] = [{ kind: 'done' }]
  const start = build(steps, node, 0)
  return { steps, start }
}

/** The first step of what matches `node` and then goes on at `next`. */
function build(steps: Step[], node: Node, next: number): number {
  switch (node.kind) {
    case 'empty':
      return next
    case 'character':
      return add(steps, { kind: 'character', accepts: node.accepts, next })
    case 'place':
      return add(steps, { kind: 'place', place: node.place, next })
    case 'sequence':
      return node.nodes.reduceRight((behind, item) => build(steps, item, behind), next)
    case 'choice':
      return add(steps, { kind: 'fork', next: node.nodes.map((item) => build(steps, item, next)) })
    case 'repeat':
      return buildRepeat(steps, node, next)
  }
}

function buildRepeat(steps: Step[], node: Node & { readonly kind: 'repeat' }, next: number): number {
  let entry = next
  if (node.most === Number.POSITIVE_INFINITY) {
    const fork: Step & { readonly kind: 'fork' } = { kind: 'fork', next: [next] }
    entry = add(steps, fork)
    fork.next = [build(steps, node.node, entry), next]
  } else {
    for (let copy = node.least; copy < node.most; copy += 1) {
      entry = add(steps, { kind: 'fork', next: [build(steps, node.node, entry), next] })
    }
  }
  for (let copy = 0; copy < node.least; copy += 1) entry = build(steps, node.node, entry)
  return entry
}

function add(steps: Step[], step: Step): number {
  if (steps.length >= MOST_STATES) throw new PatternProblem('it is too large')
  return steps.push(step) - 1
}

/** Does it match anywhere in `line`, a text made small? */
export function matches({ steps, start }: Machine, line: string): boolean {
  let states = new Set<number>()
  for (let at = 0; at <= line.length; at += 1) {
    const here = new Set<number>()
    for (const state of states) enter(steps, state, { line, at, into: here })
    enter(steps, start, { line, at, into: here })
    if (here.has(0)) return true
    states = advanced(steps, here, line.charCodeAt(at))
  }
  return false
}

interface Place {
  readonly line: string
  readonly at: number
  readonly into: Set<number>
}

/** `state` and all that is reached from it without taking a character. */
function enter(steps: readonly Step[], state: number, place: Place): void {
  const waiting = [state]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (place.into.has(next)) continue
    place.into.add(next)
    const step = steps[next]
    if (step?.kind === 'fork') waiting.push(...step.next)
    else if (step?.kind === 'place' && isAt(step.place, place)) waiting.push(step.next)
  }
}

function isAt(kind: 'start' | 'end' | 'word-edge', { line, at }: Place): boolean {
  if (kind === 'start') return at === 0
  if (kind === 'end') return at === line.length
  return (at > 0 && isWord(line.charCodeAt(at - 1))) !== (at < line.length && isWord(line.charCodeAt(at)))
}

function advanced(steps: readonly Step[], states: ReadonlySet<number>, unit: number): Set<number> {
  const next = new Set<number>()
  for (const state of states) {
    const step = steps[state]
    if (step?.kind === 'character' && step.accepts(unit)) next.add(step.next)
  }
  return next
}
