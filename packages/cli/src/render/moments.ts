/** Moments as the person's own clock shows them. */
export interface Moments {
  /** 2026-03-09 */
  day(at: string): string
  /** 09:14 */
  time(at: string): string
  /** 2026-03-09 09:14 */
  full(at: string): string
}

/** `zone`: a name as in `Europe/Berlin`; without one, the machine's own. */
export function momentsIn(zone: string | undefined): Moments {
  const format = new Intl.DateTimeFormat('en-CA', { ...knownZone(zone), ...FIELDS })
  function parts(at: string): { readonly day: string; readonly time: string } {
    const moment = Date.parse(at)
    if (Number.isNaN(moment)) return { day: '?', time: '?' }
    const found = Object.fromEntries(format.formatToParts(moment).map(({ type, value }) => [type, value]))
    return {
      day: `${found.year}-${found.month}-${found.day}`,
      time: `${found.hour}:${found.minute}`,
    }
  }
  return {
    day: (at) => parts(at).day,
    time: (at) => parts(at).time,
    full: (at) => `${parts(at).day} ${parts(at).time}`,
  }
}

const FIELDS: Intl.DateTimeFormatOptions = {
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
}

/** `TZ` may hold what only a C library understands. */
function knownZone(zone: string | undefined): Intl.DateTimeFormatOptions {
  if (zone === undefined || zone === '') return {}
  try {
    new Intl.DateTimeFormat('en-CA', { timeZone: zone })
    return { timeZone: zone }
  } catch {
    return {}
  }
}
