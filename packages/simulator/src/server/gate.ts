/** What a request may use: the version of the API it speaks and the betas it asks for. */
import { invalid, type Refusal } from '../refusal.ts'
import { betasOf } from '../validation/betas.ts'
import type { ApiVersion, Gate } from '../validation/shape.ts'
import type { Headers } from './account.ts'

const VERSIONS: readonly ApiVersion[] = ['2023-06-01', '2026-10-21']

export type GateOutcome =
  | { readonly ok: true; readonly gate: Gate }
  | { readonly ok: false; readonly refusal: Refusal }

export function gateOf(headers: Headers, cachedClearing: boolean): GateOutcome {
  const asked = headers['anthropic-version']
  if (asked === undefined) return { ok: false, refusal: invalid('anthropic-version: header is required') }
  const version = VERSIONS.find((known) => known === asked)
  if (version === undefined)
    return { ok: false, refusal: invalid(`anthropic-version: ${asked} is not a valid version`) }
  return { ok: true, gate: { version, betas: betasOf(headers['anthropic-beta']), cachedClearing } }
}
