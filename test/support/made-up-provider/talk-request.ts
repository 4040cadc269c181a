/** Encodes a model call as a request of the made-up provider, and reads entries back into messages. */
import type { ApiMessage, Payload } from '@tidemark/core/context/payload'
import type { ModelStreamInput } from '@tidemark/core/engine/ports'
import {
  type Block,
  isTextBlock,
  isThinkingBlock,
  isToolResult,
  isToolUse,
  readBlockOrigin,
  toBlocks,
} from '@tidemark/core/log/block'
import { findJsonMember, type JsonObject, parseJson } from '@tidemark/core/log/json'
import type { WorkInSteps } from '@tidemark/core/log/work-steps'
import type { EncodeCallOptions, EncodedRequest } from '@tidemark/wire/providers/provider-codec'
import { type Entry, type Instrument, type Seal, type Talk, VENDOR, type Want } from './words.ts'

type ExactTexts = ReadonlyMap<number, string> | undefined

// biome-ignore lint/correctness/useYield: requests of tests are short, so there is one step.
export function* encodeTalk(
  { payload, raw }: ModelStreamInput,
  { fields = {} }: EncodeCallOptions,
): WorkInSteps<EncodedRequest> {
  return { text: JSON.stringify(toTalk(payload, raw, fields)), headers: {}, state: null }
}

export function toTalk(payload: Payload, raw: ModelStreamInput['raw'] = [], fields: JsonObject = {}): Talk {
  const { model, system = [], tools = [], messages, ...rest } = payload
  const charter = (typeof system === 'string' ? [{ type: 'text', text: system }] : system).map(readText)
  const { stream, ...added } = fields
  return {
    engine: model,
    ...(rest as unknown as Pick<Talk, 'ceiling'>),
    ...added,
    ...(stream === true ? { flow: 'lines' } : {}),
    ...(tools.length === 0 ? {} : { instruments: tools.map(toInstrument) }),
    ...(charter.length === 0 ? {} : { charter }),
    entries: messages.flatMap((message, index) => toEntries(message, raw[index])),
  }
}

function toInstrument({ name, description, input_schema: shape }: JsonObject): Instrument {
  return { label: String(name), purpose: String(description ?? ''), shape: shape as JsonObject }
}

function readText(block: Block): string {
  return isTextBlock(block) ? block.text : JSON.stringify(block)
}

function toEntries({ role, content }: ApiMessage, raw: ExactTexts): readonly Entry[] {
  if (role === 'system') throw new Error('The made-up provider takes no instructions between its entries.')
  const blocks = toBlocks(content)
  if (role === 'assistant') return [toEngineEntry(blocks, raw)]
  const results = blocks.filter(isToolResult).map(
    ({ tool_use_id: ref, content: given = '', is_error: isError }): Entry => ({
      who: 'instrument',
      ref,
      gave: typeof given === 'string' ? given : given.map(readText).join('\n'),
      went: isError === true ? 'badly' : 'well',
    }),
  )
  const says = blocks.filter((block) => !isToolResult(block)).map(readText)
  return says.length === 0 ? results : [...results, { who: 'person', says }]
}

function toEngineEntry(blocks: readonly Block[], raw: ExactTexts): Entry {
  const mused = blocks.filter(isThinkingBlock).map((block) => readSeal(block))
  const says = blocks.filter(isTextBlock).map(({ text }) => text)
  const wants = blocks.flatMap((block, index): readonly Want[] => {
    if (!isToolUse(block)) return []
    const exact = raw?.get(index)
    const given = exact === undefined ? undefined : findJsonMember(exact, 'input')
    return [{ ref: block.id, label: block.name, given: given ?? JSON.stringify(block.input) }]
  })
  return {
    who: 'engine',
    ...(mused.length === 0 ? {} : { mused }),
    ...(says.length === 0 ? {} : { says }),
    ...(wants.length === 0 ? {} : { wants }),
  }
}

/** Items of others must never get this far: the engine takes them out. */
function readSeal(block: Block): Seal {
  const origin = readBlockOrigin(block)
  if (origin?.vendor !== VENDOR || origin.item === undefined)
    throw new Error(`A block of another provider: ${JSON.stringify(block)}`)
  return origin.item as unknown as Seal
}

/** Returns entries as messages. `account`: that of the sealed items. */
export function toMessages(entries: readonly Entry[]): readonly ApiMessage[] {
  const messages: { role: 'user' | 'assistant'; content: Block[] }[] = []
  for (const entry of entries) {
    const role = entry.who === 'engine' ? 'assistant' : 'user'
    const last = messages.at(-1)
    if (last?.role === role) last.content.push(...toContent(entry))
    else messages.push({ role, content: [...toContent(entry)] })
  }
  return messages
}

function toContent(entry: Entry): readonly Block[] {
  if (entry.who === 'person') return entry.says.map((text) => ({ type: 'text', text }))
  if (entry.who === 'instrument') {
    const { ref, gave, went } = entry
    const failed = went === 'badly' ? { is_error: true } : {}
    return [{ type: 'tool_result', tool_use_id: ref, content: gave, ...failed }]
  }
  const { mused = [], says = [], wants = [] } = entry
  return [
    ...mused.map(toSealedBlock),
    ...says.map((text) => ({ type: 'text', text })),
    ...wants.map(({ ref, label, given }) => ({
      type: 'tool_use',
      id: ref,
      name: label,
      input: parseJson(given) ?? {},
    })),
  ]
}

export function toSealedBlock({ seal, house }: Seal): Block {
  return {
    type: 'thinking',
    thinking: '',
    origin: { vendor: VENDOR, account: house, item: { seal, house } },
  }
}
