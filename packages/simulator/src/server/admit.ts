/** Everything that can turn a request down before it is asked what it wants of the model. */
import type { ThreadRequest } from '../context/threads.ts'
import type { Refusal } from '../refusal.ts'
import { checkRules, checkShape, type Endpoint } from '../validation/validate.ts'
import { type Account, type Headers, identify } from './account.ts'
import { gateOf } from './gate.ts'
import { type Prepared, prepare } from './prepare.ts'
import type { World } from './world.ts'

export interface Incoming {
  readonly endpoint: Endpoint
  readonly headers: Headers
  /** The body as parsed, and how long it was. */
  readonly value: unknown
  readonly bodyBytes: number
  /** Why the body could not be read, where it could not. */
  readonly unreadable?: Refusal
}

export type Admission =
  | {
      readonly ok: true
      readonly prepared: Prepared
      readonly thread: ThreadRequest
      readonly continues: string | null
    }
  | { readonly ok: false; readonly refusal: Refusal }

export function admit(world: World, incoming: Incoming, account: Account): Admission {
  const { settings, clock } = world
  const { endpoint, headers } = incoming
  const gate = gateOf(headers, settings.cachedClearing)
  if (!gate.ok) return gate
  const shape = checkShape(incoming.value, gate.gate, { endpoint, models: settings.models })
  if (!shape.ok) return shape
  const request = { body: shape.body, scope: account, betas: gate.gate.betas, now: clock.now() }
  const thread = world.threads.resolve(request)
  if (!thread.ok) return thread
  const { body, continues } = thread
  const { model } = shape
  const checked = checkRules({ body, gate: gate.gate, model, endpoint, settings: settings.rules })
  const outcome = checked.ok
    ? prepare(world, { body, gate: gate.gate, model, scope: account, markers: checked.markers })
    : checked
  if (!outcome.ok) {
    world.threads.release(continues)
    return outcome
  }
  return { ok: true, prepared: outcome.prepared, thread: { ...request, body }, continues }
}

export type Entry =
  | { readonly ok: true; readonly account: Account }
  | { readonly ok: false; readonly refusal: Refusal }

/** Known, and within limits? */
export function enter(world: World, headers: Headers): Entry {
  const identity = identify(headers, world.settings.accounts)
  if (!identity.ok) return identity
  const limited = world.limiter.admit(identity.account.organization)
  return limited === null ? identity : { ok: false, refusal: limited }
}
