/** An answer before it is sent: what goes over the wire, piece by piece and with what pauses. Faults change it. */
import { errorBody, type Refusal } from '../refusal.ts'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly pieces: readonly AnswerPiece[]
  /** What happens after the last piece. */
  readonly ending: 'close' | 'reset' | 'hang'
}

export interface AnswerPiece {
  readonly bytes: string | Uint8Array<ArrayBuffer>
  /** Before the piece is sent. */
  readonly delayMs: number
}

export function jsonAnswer(status: number, body: string, headers: Answer['headers'] = {}): Answer {
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    pieces: [{ bytes: body, delayMs: 0 }],
    ending: 'close',
  }
}

export function errorAnswer(refused: Refusal, requestId: string, headers: Answer['headers'] = {}): Answer {
  const body = JSON.stringify(errorBody(refused, requestId))
  return jsonAnswer(refused.status, body, { ...headers, ...refused.headers })
}
