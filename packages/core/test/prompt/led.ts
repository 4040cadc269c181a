/** Conversations led by a list of choices: prompts, tool loops, wide turns, changes, pauses, clearings, undo, compactions, rewinds. */

import { clearSession, compactSession, GeneratorChoices } from '@tidemark/core/testing'
import fc from 'fast-check'
import type { Block } from '../../src/log/block.ts'
import type { JsonObject } from '../../src/log/json.ts'
import { isPrompt } from '../../src/log/record.ts'
import { type Asked, Conversation, tool } from './conversation.ts'

/** A step of the story; what it does to the cache is for the law to know. */
export type Step = 'turn' | 'clear' | 'undo' | 'compact' | 'rewind'

export interface Led {
  readonly conversation: Conversation
  readonly choices: GeneratorChoices
}

export function led(make: () => Conversation = () => new Conversation()): fc.Arbitrary<Led> {
  const numbers = fc.array(fc.nat({ max: 0xffff }), { minLength: 30, maxLength: 400, size: 'max' })
  return numbers.map((list) => ({ conversation: make(), choices: new GeneratorChoices(list) }))
}

/** Leads it to the end; `visit` sees every request and what came before it. */
export function lead({ conversation, choices }: Led, visit: (asked: Asked, step: Step) => void): void {
  conversation.builder.user('begin')
  let step: Step = 'turn'
  while (!choices.isSpent) {
    change(conversation, choices)
    visit(conversation.ask(), step)
    respond(conversation, choices)
    conversation.now += choices.oneIn(9) ? 400_000 : 30_000
    step = act(conversation, choices)
  }
}

function change(conversation: Conversation, choices: GeneratorChoices): void {
  const { present } = conversation
  if (choices.oneIn(3)) {
    const text = `${choices.below(4)} files changed`
    const sections = present.sections.map((each) => (each.name === 'git' ? { ...each, text } : each))
    conversation.present = { ...present, sections }
  }
  if (choices.oneIn(12)) {
    const name = `mcp__${choices.below(3)}`
    const others = conversation.present.tools.filter((each) => each.name !== name)
    const tools: readonly JsonObject[] = choices.oneIn(2) ? others : [...others, tool(name)]
    conversation.present = { ...conversation.present, tools }
  }
}

function respond(conversation: Conversation, choices: GeneratorChoices): void {
  const { builder } = conversation
  const calls = choices.oneIn(10) ? 24 : choices.below(3)
  const uses = Array.from({ length: calls }, (_, index): Block => {
    const input = { path: `/src/${choices.below(9)}.ts`, index }
    return { type: 'tool_use', id: builder.id('call'), name: 'Read', input }
  })
  const weave = choices.oneIn(3)
  const opening: readonly Block[] = choices.oneIn(2)
    ? [{ type: 'thinking', thinking: 'hm', signature: builder.id('sig') }]
    : []
  const said = uses.flatMap((use, index) => (weave ? [{ type: 'text', text: `next ${index}` }, use] : [use]))
  conversation.answer([...opening, { type: 'text', text: `word ${choices.below(99)}` }, ...said])
  for (const use of uses)
    builder.result(String(use.id), `result ${choices.below(999)}`.repeat(1 + choices.below(9)))
  if (calls === 0) builder.user(`go on ${choices.below(999)}`)
}

function act(conversation: Conversation, choices: GeneratorChoices): Step {
  const { builder } = conversation
  const kind = choices.below(14)
  if (kind === 1) clearSession(builder, choices)
  else if (kind === 2) {
    if (choices.oneIn(2)) compactSession(builder, choices)
    else conversation.compact()
  } else if (kind === 3) {
    const newest = builder.view.rewrites.at(-1)
    if (newest === undefined) return 'turn'
    builder.notice(newest.kind === 'compact' ? 'compact_undone' : 'clear_undone', { of: newest.uuid })
    return 'undo'
  } else if (kind === 4) {
    const prompts = builder.records.filter(isPrompt)
    const target = prompts[choices.below(prompts.length)]
    if (target === undefined) return 'turn'
    builder.user(`again ${choices.below(99)}`, { parentUuid: target.parentUuid })
    return 'rewind'
  }
  return kind === 1 ? 'clear' : kind === 2 ? 'compact' : 'turn'
}
