/** What a page is drawn on: how wide, in which colours, with which characters, by whose clock. */
import type { Colors } from 'picocolors/types.js'
import { colorsFor, type Terminal } from '../terminal.ts'
import { type Moments, momentsIn } from './moments.ts'
import { type Symbols, symbolsFor } from './symbols.ts'

export interface Screen {
  readonly columns: number
  readonly colors: Colors
  readonly symbols: Symbols
  readonly moments: Moments
}

/** Narrower than this no table reads well; wider than that no line does. */
const NARROWEST = 60
const WIDEST = 160

export function screenFor(terminal: Terminal): Screen {
  return {
    columns: Math.min(WIDEST, Math.max(NARROWEST, terminal.columns)),
    colors: colorsFor(terminal),
    symbols: symbolsFor(terminal.env),
    moments: momentsIn(terminal.env.TZ),
  }
}
