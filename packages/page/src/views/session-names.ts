/** How sessions, programs and times are named on the page. */
import type { PageReport } from 'tidemark/report'

export const PROGRAMS: Readonly<Record<PageReport['format'], string>> = {
  'claude-code': 'Claude Code',
  codex: 'Codex',
  tidemark: 'Tidemark',
}

const NAME_CHARACTERS = 90

type NamedSession = Pick<PageReport, 'firstPrompt' | 'sessionId' | 'project' | 'file'>

/** The first prompt in one line; without one, the id. */
export function nameSession({ firstPrompt, sessionId, file }: NamedSession): string {
  const prompt = (firstPrompt ?? '').replace(/\s+/g, ' ').trim()
  if (prompt !== '') return prompt.length > NAME_CHARACTERS ? `${prompt.slice(0, NAME_CHARACTERS)}…` : prompt
  return sessionId ?? file.split(/[/\\]/).at(-1) ?? 'Session'
}

/** The last two folders of the project. */
export function formatPlace({ project }: NamedSession): string {
  return (project ?? '').split(/[/\\]/).filter(Boolean).slice(-2).join('/')
}

const WHEN = new Intl.DateTimeFormat(undefined, {
  year: 'numeric',
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
})
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' })

export function formatWhen(at: string | null): string {
  return at === null || Number.isNaN(Date.parse(at)) ? '' : WHEN.format(new Date(at))
}

export function formatClock(at: string | null): string {
  return at === null || Number.isNaN(Date.parse(at)) ? '' : CLOCK.format(new Date(at))
}
