/** The events of a Responses stream, created from a finished response. Every event gets the next sequence number. */
import { isObject } from '../../protocol/messages-request.ts'
import type { JsonFields } from '../openai-shape.ts'

/** An event, and the kind of delay before it. */
interface StreamEvent {
  readonly data: JsonFields
  readonly delay: 'start' | 'block' | 'piece' | 'none'
}

interface StreamInput {
  /** The response object before any output was generated. */
  readonly pending: JsonFields
  readonly finished: JsonFields
  /** Characters per delta. */
  readonly deltaSize: number
}

/** Lists the events of a response, in order. */
export function listResponseEvents({ pending, finished, deltaSize }: StreamInput): readonly StreamEvent[] {
  const output = Array.isArray(finished.output) ? finished.output.filter(isObject) : []
  const ending = finished.status === 'incomplete' ? 'response.incomplete' : 'response.completed'
  const events: readonly Unnumbered[] = [
    { data: { type: 'response.created', response: pending }, delay: 'start' },
    { data: { type: 'response.in_progress', response: pending }, delay: 'none' },
    ...output.flatMap((item, index) => listItemEvents(item, index, deltaSize)),
    { data: { type: ending, response: finished }, delay: 'none' },
  ]
  return numberEvents(events)
}

interface Unnumbered {
  readonly data: JsonFields
  readonly delay: StreamEvent['delay']
}

function numberEvents(events: readonly Unnumbered[]): readonly StreamEvent[] {
  return events.map(({ data, delay }, index) => {
    const { type, ...rest } = data
    return { data: { type, sequence_number: index, ...rest }, delay }
  })
}

/**
 * Returns the two events with which every stream begins, and `others` after them, for a response that fails before any
 * output.
 */
export function listStreamStartEvents(
  pending: JsonFields,
  ...others: readonly JsonFields[]
): readonly StreamEvent[] {
  return numberEvents([
    { data: { type: 'response.created', response: pending }, delay: 'start' },
    { data: { type: 'response.in_progress', response: pending }, delay: 'none' },
    ...others.map((data): Unnumbered => ({ data, delay: 'none' })),
  ])
}

export function encodeStreamEvent({ data }: StreamEvent): string {
  return `event: ${String(data.type)}\ndata: ${JSON.stringify(data)}\n\n`
}

function listItemEvents(item: JsonFields, index: number, deltaSize: number): readonly Unnumbered[] {
  const at = { item_id: item.id, output_index: index }
  return [
    {
      data: { type: 'response.output_item.added', output_index: index, item: startItem(item) },
      delay: index === 0 ? 'none' : 'block',
    },
    ...listContentEvents(item, at, deltaSize),
    { data: { type: 'response.output_item.done', output_index: index, item }, delay: 'none' },
  ]
}

/** Returns an item as it is at its start, without the content that deltas will add. */
function startItem(item: JsonFields): JsonFields {
  switch (item.type) {
    case 'message':
      return { ...item, status: 'in_progress', content: [] }
    case 'function_call':
      return { ...item, status: 'in_progress', arguments: '' }
    case 'custom_tool_call':
      return { ...item, input: '' }
    case 'reasoning':
      // At this point the provider sends only the start of the encrypted content.
      return { ...item, summary: [], encrypted_content: String(item.encrypted_content).slice(0, 24) }
    default:
      return item
  }
}

interface ItemPlace {
  readonly item_id: unknown
  readonly output_index: number
}

function listContentEvents(item: JsonFields, at: ItemPlace, deltaSize: number): readonly Unnumbered[] {
  switch (item.type) {
    case 'message':
      return listParts(item.content).flatMap((part, index) => listPartEvents(part, index, at, deltaSize))
    case 'function_call':
      return listDeltas({
        name: 'response.function_call_arguments',
        field: 'arguments',
        text: String(item.arguments),
        at,
        deltaSize,
      })
    case 'custom_tool_call':
      return listDeltas({
        name: 'response.custom_tool_call_input',
        field: 'input',
        text: String(item.input),
        at,
        deltaSize,
      })
    case 'reasoning':
      return listParts(item.summary).flatMap((part, index) => listSummaryEvents(part, index, at, deltaSize))
    case 'compaction':
      return [{ data: { type: 'response.compaction.compacting', ...at }, delay: 'none' }]
    default:
      return []
  }
}

function listParts(value: unknown): readonly JsonFields[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

interface DeltaInput {
  /** Common name of the events, without the endings `.delta` and `.done`. */
  readonly name: string
  /** The field with the whole text in the `.done` event. */
  readonly field: string
  readonly text: string
  readonly at: object
  readonly deltaSize: number
  /** Fields that all these events have. */
  readonly extra?: object
}

/** Lists the deltas of a text and the event that ends them. */
function listDeltas({ name, field, text, at, deltaSize, extra = {} }: DeltaInput): readonly Unnumbered[] {
  return [
    ...splitIntoDeltas(text, deltaSize).map(
      (delta): Unnumbered => ({ data: { type: `${name}.delta`, ...at, delta, ...extra }, delay: 'piece' }),
    ),
    { data: { type: `${name}.done`, ...at, [field]: text, ...extra }, delay: 'none' },
  ]
}

function listPartEvents(
  part: JsonFields,
  index: number,
  place: ItemPlace,
  deltaSize: number,
): readonly Unnumbered[] {
  const at = { ...place, content_index: index }
  const isRefusal = part.type === 'refusal'
  const empty = isRefusal ? { ...part, refusal: '' } : { ...part, text: '' }
  const deltas = isRefusal
    ? listDeltas({ name: 'response.refusal', field: 'refusal', text: String(part.refusal), at, deltaSize })
    : listDeltas({
        name: 'response.output_text',
        field: 'text',
        text: String(part.text),
        at,
        deltaSize,
        extra: { logprobs: [] },
      })
  return [
    { data: { type: 'response.content_part.added', ...at, part: empty }, delay: 'none' },
    ...deltas,
    { data: { type: 'response.content_part.done', ...at, part }, delay: 'none' },
  ]
}

function listSummaryEvents(
  part: JsonFields,
  index: number,
  place: ItemPlace,
  deltaSize: number,
): readonly Unnumbered[] {
  const at = { ...place, summary_index: index }
  return [
    {
      data: { type: 'response.reasoning_summary_part.added', ...at, part: { ...part, text: '' } },
      delay: 'none',
    },
    ...listDeltas({
      name: 'response.reasoning_summary_text',
      field: 'text',
      text: String(part.text),
      at,
      deltaSize,
    }),
    { data: { type: 'response.reasoning_summary_part.done', ...at, part }, delay: 'none' },
  ]
}

/** Splits a text into parts of `size` characters, none of which ends inside a surrogate pair. */
export function splitIntoDeltas(text: string, size: number): readonly string[] {
  const parts: string[] = []
  for (let start = 0; start < text.length; ) {
    let end = Math.min(text.length, start + Math.max(1, size))
    if (/[\uD800-\uDBFF]/.test(text.charAt(end - 1)) && end < text.length) end += 1
    parts.push(text.slice(start, end))
    start = end
  }
  return parts
}
