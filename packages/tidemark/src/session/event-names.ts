/** The names of all that a session tells, so that a listener for something that never comes is a mistake and not a silence. */
import { badOption, noSuch } from './option-names.ts'
import type { SessionEventType } from './session-event.ts'

const NAMES: Readonly<Record<SessionEventType, true>> = {
  'act-paid': true,
  answered: true,
  appended: true,
  'breaker-open': true,
  'cache-broke': true,
  'cache-edits-dropped': true,
  'cache-judged': true,
  'calls-settled': true,
  'caught-up': true,
  compact: true,
  'compact-failed': true,
  'epoch-opened': true,
  fork: true,
  'hook-failed': true,
  'hook-said': true,
  'keep-alive': true,
  'listener-failed': true,
  'log-damaged': true,
  'media-dropped': true,
  microcompact: true,
  'model-switched': true,
  notice: true,
  phase: true,
  planned: true,
  'prefix-changed': true,
  priced: true,
  'reactive-compact': true,
  reply: true,
  'request-sent': true,
  'restore-failed': true,
  restored: true,
  retrying: true,
  rewritten: true,
  'side-reply': true,
  'side-sent': true,
  'spill-failed': true,
  spilled: true,
  'summary-progress': true,
  'thinking-dropped': true,
  'tool-ended': true,
  'tool-started': true,
  'turn-ended': true,
  undone: true,
  'veto-overruled': true,
}

/** Throws `bad-option` where no event has this name. */
export function checkListening(type: unknown, listener: unknown): void {
  if (type !== '*' && !(typeof type === 'string' && Object.hasOwn(NAMES, type)))
    throw noSuch('on', String(type), ['*', ...Object.keys(NAMES)], 'event')
  if (typeof listener !== 'function')
    throw badOption('listener', `on("${String(type)}", listener): expected a function.`)
}
