/** Finds what in the text of a request body would not survive parse and stringify. */
import { elementsOf, memberOf, membersOf, rawUnlessSurvives } from '@tidemark/core'
import type { RawTexts } from './request.ts'

const ZONES = new Set(['tools', 'system', 'messages'])

/** `text` is a body that parses and has the shape of a request. */
export function rawTextsIn(text: string): RawTexts {
  const parameters = membersOf(text).flatMap(({ key, text: value }) => {
    const raw = ZONES.has(key) ? undefined : rawUnlessSurvives(value)
    return raw === undefined ? [] : [[key, raw] as const]
  })
  return {
    ...(parameters.length === 0 ? {} : { parameters: new Map(parameters) }),
    tools: rawElements(memberOf(text, 'tools')),
    system: rawElements(memberOf(text, 'system')),
    messages: elementsOf(memberOf(text, 'messages') ?? '[]').map((message) =>
      rawElements(memberOf(message, 'content')),
    ),
  }
}

function rawElements(list: string | undefined): ReadonlyMap<number, string> {
  if (!list?.startsWith('[')) return new Map()
  const raws = elementsOf(list).flatMap((element, index) => {
    const raw = rawUnlessSurvives(element)
    return raw === undefined ? [] : [[index, raw] as const]
  })
  return new Map(raws)
}
