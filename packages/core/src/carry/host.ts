/** Carriers of the host's own: any state with a source of truth, within a budget. */
import type { Sheddable } from '../policy/groups/compact-policy.ts'
import type { Carrier } from './carrier.ts'
import { type Given, simpleCarrier } from './simple-carrier.ts'

export interface HostState {
  /** What tells it from the carrier's other things; may be left out where there is only one. */
  readonly id?: string
  readonly text: string
}

export interface HostCarrier {
  /** Also the type of the attachment, unless `type` says otherwise. */
  readonly name: string
  readonly type?: string
  /** Newest first, as it is now; none where there is nothing to say. */
  readonly read: () => Given<readonly HostState[]>
  /** Cut what is over the budget for one thing, with a note; otherwise it is left out and reported. */
  readonly mayCut?: boolean
  /** Say changes between compactions too. True unless given. */
  readonly tellsChanges?: boolean
  /** May go when a compacted view is above its target, and with what. */
  readonly sheddable?: Sheddable
}

export function hostCarrier({
  name,
  type = name,
  read,
  mayCut = false,
  tellsChanges = true,
  sheddable,
}: HostCarrier): Carrier {
  return simpleCarrier({
    name,
    kind: 'host',
    tellsChanges,
    limit: ({ budgets }) => ({ ...budgets.host, count: Number.POSITIVE_INFINITY }),
    read: async () =>
      (await read()).map(({ id = '', text }) => ({
        id,
        attachment: { type, content: text },
        source: name,
        ...(sheddable === undefined ? {} : { sheddable }),
        ...(mayCut ? { cutNote } : {}),
      })),
  })
}

function cutNote(shown: string, whole: string): string {
  return `[cut: ${shown.length} of ${whole.length} characters are shown]`
}
