/** Generated sessions as a fast-check arbitrary: lists of choices, which shrink. */
import { type GeneratedSession, GeneratorChoices, generateSession } from '@tidemark/core/testing'
import fc from 'fast-check'
import { type FlattenedContext, listTracedMessages } from '../../src/context/flatten-context.ts'
import type { ApiMessage } from '../../src/context/payload.ts'

export function generatedSessions(
  options: { readonly settled?: boolean } = {},
): fc.Arbitrary<GeneratedSession> {
  const choices = fc.array(fc.nat({ max: 0xffff }), { minLength: 20, maxLength: 260, size: 'max' })
  return choices.map((numbers) => generateSession(new GeneratorChoices(numbers), options))
}

/** Every block that would be sent, as text with its role: what a provider's cache compares, without markers. */
export function blockFragments(flat: FlattenedContext): readonly string[] {
  return listTracedMessages(flat).flatMap(({ message, raw }) =>
    blockTexts(message).map((text, index) => `${message.role} ${raw?.get(index) ?? text}`),
  )
}

function blockTexts(message: ApiMessage): readonly string[] {
  if (typeof message.content === 'string') return [JSON.stringify({ type: 'text', text: message.content })]
  return message.content.map((block) => JSON.stringify(block))
}
