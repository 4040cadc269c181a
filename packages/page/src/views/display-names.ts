/** How sessions, models and times are written on the page. A time that is null or unreadable becomes an empty text. */
import type { PageSessionReport, SessionOwner } from 'tidemark/report'

const NAME_CHARACTERS = 90

type NamedSession = Pick<PageSessionReport, 'firstPrompt' | 'sessionId' | 'project' | 'file'>

/** Returns the beginning of the first prompt on one line; without a prompt, the id or the name of the log file. */
export function nameSession({ firstPrompt, sessionId, file }: NamedSession): string {
  const prompt = (firstPrompt ?? '').replace(/\s+/g, ' ').trim()
  if (prompt !== '') return prompt.length > NAME_CHARACTERS ? `${prompt.slice(0, NAME_CHARACTERS)}…` : prompt
  return sessionId ?? file.split(/[/\\]/).at(-1) ?? 'Session'
}

/** Returns where a session comes from: on a gateway the id that the client gave it, else the last two folders of the project. */
export function formatSessionOrigin({
  project,
  owner,
}: Pick<NamedSession, 'project'> & { readonly owner?: SessionOwner }): string {
  if (owner !== undefined) return owner.session
  return (project ?? '').split(/[/\\]/).filter(Boolean).slice(-2).join('/')
}

/** Returns the name of a model without its release date. */
export function formatModelName(model: string): string {
  return model.replace(/-\d{8}$/, '')
}

const TIME = { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' } as const
const WHEN = new Intl.DateTimeFormat(undefined, TIME)
const WHEN_EARLIER = new Intl.DateTimeFormat(undefined, { ...TIME, year: 'numeric' })
const DAY = new Intl.DateTimeFormat(undefined, {
  weekday: 'short',
  month: 'short',
  day: 'numeric',
  year: 'numeric',
  timeZone: 'UTC',
})
const MONTH = new Intl.DateTimeFormat(undefined, { month: 'long', year: 'numeric', timeZone: 'UTC' })
const MOMENT = new Intl.DateTimeFormat(undefined, { ...TIME, second: '2-digit' })
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' })

/** Formats day and time to the minute; the year only if it is not the present one. */
export function formatDateTime(at: string | null): string {
  if (at === null || Number.isNaN(Date.parse(at))) return ''
  const time = new Date(at)
  // The year is shown only if it is not the current year.
  return (time.getFullYear() === new Date().getFullYear() ? WHEN : WHEN_EARLIER).format(time)
}

/** Formats day and time to the second, without the year. */
export function formatDateTimeSeconds(at: string | null): string {
  return at === null || Number.isNaN(Date.parse(at)) ? '' : MOMENT.format(new Date(at))
}

/** Formats a day of a report, such as 2026-04-11, with its weekday. Other texts are returned unchanged. */
export function formatDay(day: string): string {
  return Number.isNaN(Date.parse(day)) ? day : DAY.format(new Date(day))
}

/** Formats a month of a report, such as 2026-04. Other texts are returned unchanged. */
export function formatMonth(month: string): string {
  return Number.isNaN(Date.parse(month)) ? month : MONTH.format(new Date(month))
}

export function formatTimeOfDay(at: string | null): string {
  return at === null || Number.isNaN(Date.parse(at)) ? '' : CLOCK.format(new Date(at))
}
