/**
 * The made-up provider itself, in memory. It refuses everything that its protocol does not have, opens only seals of its
 * own, caches the beginning of every prompt, and keeps a bill. A script of the simulator plays the engine.
 */

import type { JsonObject } from '@tidemark/core/log/json'
import type { Script } from '@tidemark/simulator'
import { toAnswer, writeLine } from './talk-codec.ts'
import { CACHE_MINIMUM, CACHE_STEP } from './talk-profile.ts'
import { toMessages } from './talk-request.ts'
import { type Entry, LINES_TYPE, type Line, type Seal, type Talk, type Tally, type Trouble } from './words.ts'

/** Dollars per million tokens. */
export const PRICES = { fresh: 2, recalled: 0.2, spoken: 8 }

export interface TalkRecord {
  readonly text: string
  readonly talk: Talk
  /** Account that the request was made for. */
  readonly house: string
  readonly trouble: Trouble | null
  readonly tally: Tally | null
  readonly dollars: number
}

export interface TalkServer {
  readonly fetch: typeof globalThis.fetch
  readonly records: readonly TalkRecord[]
  /** The seals of each answer, by its first seal. */
  readonly sealed: ReadonlyMap<string, readonly string[]>
  readonly bill: () => number
}

export interface TalkServerOptions {
  readonly script: Script
  readonly window: number
}

export function createTalkServer({ script, window }: TalkServerOptions): TalkServer {
  const records: TalkRecord[] = []
  const sealed = new Map<string, readonly string[]>()
  const prompts: (readonly string[])[] = []
  let count = 0

  const answer = async (talk: Talk, house: string, text: string): Promise<readonly Line[] | Trouble> => {
    const pieces = listPieces(talk)
    const heard = countTokens(pieces)
    const trouble = findTrouble(talk, house, sealed) ?? findOverflow(heard, window)
    if (trouble !== null) {
      records.push({ text, talk, house, trouble, tally: null, dollars: 0 })
      return trouble
    }
    const shared = Math.max(0, ...prompts.map((prompt) => countShared(prompt, pieces)))
    const recalled = shared < CACHE_MINIMUM ? 0 : shared - (shared % CACHE_STEP)
    prompts.push(pieces)
    count += 1
    const said = await play(script, talk, house, count, heard)
    const seals = said.flatMap((line) => (line.is === 'mused' ? [line.seal] : []))
    for (const seal of seals) sealed.set(seal, seals)
    const tally: Tally = { heard, recalled, spoken: countTokens(said.map((line) => JSON.stringify(line))) }
    const because = said.some(({ is }) => is === 'want') ? 'waiting' : 'content'
    const dollars =
      ((heard - recalled) * PRICES.fresh + recalled * PRICES.recalled + tally.spoken * PRICES.spoken) / 1e6
    records.push({ text, talk, house, trouble: null, tally, dollars })
    return [
      { is: 'hello', ticket: `ticket-${house}-${count}`, engine: talk.engine },
      { is: 'hush' },
      ...said,
      { is: 'bye', because, tally },
    ]
  }

  return {
    records,
    sealed,
    bill: () => records.reduce((sum, { dollars }) => sum + dollars, 0),
    async fetch(_, init) {
      const text = String(init?.body)
      const talk: Talk = JSON.parse(text)
      const house = new Headers(init?.headers).get('x-pass') ?? ''
      const lines = await answer(talk, house, text)
      if ('name' in lines) return Response.json({ trouble: lines }, { status: 422 })
      if (talk.flow !== 'lines') return Response.json(toAnswer(lines))
      return new Response(lines.map(writeLine).join(''), { headers: { 'content-type': LINES_TYPE } })
    },
  }
}

function listPieces({ engine, instruments = [], charter = [], entries }: Talk): readonly string[] {
  return [
    engine,
    ...instruments.map((each) => JSON.stringify(each)),
    ...charter,
    ...entries.flatMap(listParts),
  ]
}

/** Every part of an entry is a piece of its own, so that a longer entry still begins like the shorter one. */
function listParts(entry: Entry): readonly string[] {
  if (entry.who === 'instrument') return [JSON.stringify(entry)]
  if (entry.who === 'person') return entry.says
  const { mused = [], says = [], wants = [] } = entry
  return [...mused, ...says, ...wants].map((part) => JSON.stringify(part))
}

const countTokens = (pieces: readonly string[]): number =>
  pieces.reduce((sum, piece) => sum + Math.ceil(piece.length / 4), 0)

function countShared(one: readonly string[], other: readonly string[]): number {
  const differs = one.findIndex((piece, index) => piece !== other[index])
  return countTokens(differs === -1 ? one : one.slice(0, differs))
}

async function play(
  script: Script,
  { engine, ceiling, instruments = [], charter = [], entries }: Talk,
  house: string,
  index: number,
  inputTokens: number,
): Promise<readonly Line[]> {
  const tools = instruments.map(({ label, purpose, shape }) => ({
    name: label,
    description: purpose,
    input_schema: shape,
  }))
  const system = charter.map((text) => ({ type: 'text', text }))
  const messages = toMessages(entries) as unknown as Parameters<Script>[0]['messages']
  const body = { model: engine, max_tokens: ceiling, messages, tools, system }
  const { blocks } = await script(
    {
      kind: 'message',
      instructions: null,
      model: engine,
      maxTokens: ceiling,
      system,
      tools,
      messages,
      body,
      headers: {},
    },
    { index, turn: 0, inputTokens, random: () => 0.5, now: 0 },
  )
  return (blocks as readonly JsonObject[]).flatMap((block, at) => toLines(block, house, `${index}-${at}`))
}

function toLines(block: JsonObject, house: string, name: string): readonly Line[] {
  if (block.type === 'text') return splitInTwo(String(block.text)).map((piece) => ({ is: 'says', piece }))
  if (block.type === 'tool_use')
    return [
      { is: 'want', ref: `want-${house}-${name}`, label: String(block.name) },
      ...splitInTwo(JSON.stringify(block.input)).map((piece): Line => ({ is: 'given', piece })),
    ]
  const seal = Buffer.from(`${house} ${name} ${String(block.thinking)}`).toString('base64')
  return [{ is: 'mused', seal, house }]
}

function splitInTwo(text: string): readonly string[] {
  const middle = Math.ceil(text.length / 2)
  return [text.slice(0, middle), text.slice(middle)]
}

// What the provider refuses.

const FIELDS: ReadonlySet<string> = new Set([
  'engine',
  'ceiling',
  'zeal',
  'flow',
  'instruments',
  'charter',
  'entries',
])

function findOverflow(asked: number, room: number): Trouble | null {
  return asked <= room ? null : { name: 'brimful', words: 'No more fits in here', asked, room }
}

function findTrouble(
  talk: Talk,
  house: string,
  sealed: ReadonlyMap<string, readonly string[]>,
): Trouble | null {
  const muddle = (words: string): Trouble => ({ name: 'muddle', words })
  const unknown = Object.keys(talk).find((field) => !FIELDS.has(field))
  if (unknown !== undefined) return muddle(`unknown field ${unknown}`)
  if (typeof talk.ceiling !== 'number') return muddle('ceiling is missing')
  if (talk.entries[0]?.who !== 'person') return muddle('the first entry is not of a person')
  let open: string[] = []
  for (const [index, entry] of talk.entries.entries()) {
    if (entry.who !== 'instrument' && entry.who === talk.entries[index - 1]?.who)
      return muddle(`the ${entry.who} speaks twice in a row`)
    if (entry.who === 'instrument') {
      if (!open.includes(entry.ref)) return muddle(`nothing wanted ${entry.ref}`)
      open = open.filter((ref) => ref !== entry.ref)
      continue
    }
    if (open.length > 0) return muddle(`wanted but not given: ${open.join(', ')}`)
    if (entry.who === 'person' && entry.says.length === 0) return muddle('an empty entry')
    if (entry.who !== 'engine') continue
    const { mused = [], says = [], wants = [] } = entry
    if (says.length + wants.length === 0) return muddle('an engine entry that says and wants nothing')
    if (!mused.every((seal) => isOwnSeal(seal, house, sealed)))
      return { name: 'broken-seal', words: 'Not our seal' }
    open = wants.map(({ ref }) => ref)
  }
  return open.length > 0 ? muddle(`wanted but not given: ${open.join(', ')}`) : null
}

function isOwnSeal(
  { seal, house }: Seal,
  own: string,
  sealed: ReadonlyMap<string, readonly string[]>,
): boolean {
  return house === own && sealed.has(seal)
}
