/** Which announced act a loss belongs to, and when that act will have paid for itself. */
import type { Rates } from '../measure/prices.ts'
import type { PricedAnnouncement } from './announcement.ts'
import type { OwnAct } from './break-event.ts'
import { type Reason, zoneOf } from './reason.ts'

/** A rewrite of the zone the reason lies in, or a clearing where messages changed. */
export function actBehind(
  announced: readonly PricedAnnouncement[],
  reason: Reason,
): PricedAnnouncement | null {
  const zone = zoneOf(reason)
  const found = announced.find((announcement) =>
    announcement.kind === 'rewrite' ? announcement.zone === zone : zone === 'messages',
  )
  return found ?? null
}

/** An act that has to be paid for without being a break. */
export function quietAct(announced: readonly PricedAnnouncement[]): PricedAnnouncement | null {
  return announced.find(({ kind }) => kind === 'clearing' || kind === 'cache-edits') ?? null
}

/** `cost`: what it really came to, above the price of a read; null where that is not known. */
export function ownAct(announcement: PricedAnnouncement, cost: number | null, rates: Rates | null): OwnAct {
  const planned = announcement.breakEvenTurns ?? null
  return { act: announcement.act, breakEvenTurns: breakEven(announcement, cost, rates) ?? planned }
}

/** Each call no longer reads what was freed: (w / r − 1) · L / E calls, with L written again at w and E freed. */
function breakEven(
  { freedTokens = 0 }: PricedAnnouncement,
  cost: number | null,
  rates: Rates | null,
): number | null {
  const saved = (freedTokens * (rates?.cacheRead ?? 0)) / 1_000_000
  return cost === null || saved <= 0 ? null : Math.max(0, Math.ceil(cost / saved))
}
