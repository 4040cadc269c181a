/**
 * The protocol of a provider that does not exist. It has other words than every real one for everything: fields, roles,
 * usage, ends, errors and events of the stream, which are lines of JSON. Each result of a tool is an entry of its own, no
 * instruction may stand between the entries, and what the engine mused comes as sealed items.
 */
import type { JsonObject } from '@tidemark/core/log/json'

export const VENDOR = 'made-up'
export const TALK_PATH = '/talk'
export const LINES_TYPE = 'application/x-talk-lines'

/** A sealed item of reasoning. Only the account that it was made for can open it. */
export interface Seal {
  readonly seal: string
  readonly house: string
}

export interface Want {
  readonly ref: string
  readonly label: string
  /** The arguments, as the engine wrote them. */
  readonly given: string
}

/** An entry of the conversation. */
export type Entry =
  | { readonly who: 'person'; readonly says: readonly string[] }
  | {
      readonly who: 'engine'
      readonly mused?: readonly Seal[]
      readonly says?: readonly string[]
      readonly wants?: readonly Want[]
    }
  | {
      readonly who: 'instrument'
      readonly ref: string
      readonly gave: string
      readonly went: 'well' | 'badly'
    }

export interface Instrument {
  readonly label: string
  readonly purpose: string
  readonly shape: JsonObject
}

/** A request. The entries come last, so that a new one only appends. */
export interface Talk {
  readonly engine: string
  readonly ceiling: number
  readonly zeal?: string
  readonly flow?: 'lines'
  readonly instruments?: readonly Instrument[]
  readonly charter?: readonly string[]
  readonly entries: readonly Entry[]
}

/** What a call used. `heard` includes `recalled`, which came from the cache. */
export interface Tally {
  readonly heard: number
  readonly recalled: number
  readonly spoken: number
}

/** A line of a streamed answer. Its last line is `bye` or `trouble`. */
export type Line =
  | { readonly is: 'hello'; readonly ticket: string; readonly engine: string }
  | { readonly is: 'hush' }
  | ({ readonly is: 'mused' } & Seal)
  | { readonly is: 'says'; readonly piece: string }
  | { readonly is: 'want'; readonly ref: string; readonly label: string }
  | { readonly is: 'given'; readonly piece: string }
  | { readonly is: 'bye'; readonly because: string; readonly tally: Tally }
  | ({ readonly is: 'trouble' } & Trouble)

/** An answer that is not streamed. */
export interface Answer {
  readonly ticket: string
  readonly engine: string
  readonly because: string
  readonly tally: Tally
  readonly lines: readonly Line[]
}

/** An error. `asked` and `room` are tokens of the prompt and of the window. */
export interface Trouble {
  readonly name: string
  readonly words: string
  readonly asked?: number
  readonly room?: number
}
