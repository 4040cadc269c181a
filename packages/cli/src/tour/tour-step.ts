/** What the tour tells, step by step: words for people, and the same as data for programs. */

export interface TourStep {
  /** A heading, a plain line, or a line about an act that rewrote the conversation. */
  readonly kind: 'scene' | 'line' | 'act'
  readonly text: string
  readonly data?: Readonly<Record<string, unknown>>
}

export function scene(text: string): TourStep {
  return { kind: 'scene', text }
}

export function line(text: string, data?: TourStep['data']): TourStep {
  return data === undefined ? { kind: 'line', text } : { kind: 'line', text, data }
}

export function act(text: string, data?: TourStep['data']): TourStep {
  return data === undefined ? { kind: 'act', text } : { kind: 'act', text, data }
}
