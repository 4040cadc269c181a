/** The state of the chat while it runs, and the texts that the lines around the input show of it. */

import { formatDuration, formatTokens } from '@tidemark/terminal/render/format-numbers'
import type { Agent } from '../agent/agent-options.ts'
import type { LoadedMemoryFile } from '../agent/memory-sources.ts'
import { MODE_LABELS } from '../agent/permissions.ts'
import { createMeterTracker, type MeterReading, type MeterTracker } from '../screen/context-meter.ts'
import type { InputAreaState } from '../screen/input-area.ts'
import { createPromptQueue, type PromptQueue } from './prompt-queue.ts'

/** The state of the chat while it runs, changed in place. */
export interface ChatState {
  agent: Agent | null
  sessionId: string
  clock: MeterTracker
  /** The model that the user has switched to. */
  model: string | null
  memoryFiles: LoadedMemoryFile[]
  queue: PromptQueue
  /** Shell commands that the user has run since the last prompt. */
  readonly shellRuns: { readonly command: string; readonly output: string }[]
  /** True from the moment when the program begins to end. */
  isClosing: boolean
  /** The running work; null if the session is idle. */
  running: RunningWork | null
  /** The last reading of the context meter; null before the first. */
  meter: MeterReading | null
  /** True if something has changed since the meter was read. */
  isMeterOld: boolean
  /** When the meter was last read, in milliseconds. */
  meterAt: number
  /** When Ctrl-C was last pressed on an empty input. A second Ctrl-C soon after exits. */
  exitAskedAt: number
  hint: string
}

/** A turn, or a command that changes the session, while it runs. */
export interface RunningWork {
  /** Aborted to stop the work. */
  readonly stop: AbortController
  /** Description of the present step. */
  text: string
  /** Start time of the present step. */
  since: number
  /** Characters that the model has sent in the present step. */
  received: number
  /** True for a turn, whose events change `text`. For a command, the text stays the same. */
  readonly isTurn: boolean
}

/** Milliseconds for which a value of the meter is reused. */
const METER_MS = 250
/** Milliseconds within which a second Ctrl-C exits. */
export const EXIT_CONFIRM_MS = 2_000

export function createChatState(sessionId: string): ChatState {
  return {
    agent: null,
    sessionId,
    clock: createMeterTracker(),
    model: null,
    memoryFiles: [],
    queue: createPromptQueue(),
    shellRuns: [],
    isClosing: false,
    running: null,
    meter: null,
    isMeterOld: true,
    meterAt: 0,
    exitAskedAt: 0,
    hint: '',
  }
}

/** Sets the running work of the chat, and removes the hint. */
export function startRunningWork(state: ChatState, text: string, isTurn = false): RunningWork {
  const running = { since: Date.now(), stop: new AbortController(), text, received: 0, isTurn }
  state.running = running
  state.hint = ''
  return running
}

/** Sets the present step of a turn, with its start time and no characters yet. Changes nothing for a command or the same step. */
export function setRunningStep(running: RunningWork, text: string): void {
  if (!running.isTurn || running.text === text) return
  running.text = text
  running.since = Date.now()
  running.received = 0
}

/** Characters per token, to estimate the tokens received. */
const CHARACTERS_PER_TOKEN = 4

function describeRunning({ text, since, received }: RunningWork, now: number): InputAreaState['status'] {
  const tokens = Math.round(received / CHARACTERS_PER_TOKEN)
  const arrived = tokens === 0 ? '' : ` · about ${formatTokens(tokens)} tokens`
  return { text, progress: ` · ${formatDuration(now - since)}${arrived}` }
}

/** Returns what the lines around the input show. Reads an old meter again, at most every `METER_MS`; drops an expired hint. */
export function readInputAreaState(state: ChatState, now: number): InputAreaState {
  if (state.isMeterOld && state.agent !== null && now - state.meterAt >= METER_MS) {
    state.isMeterOld = false
    state.meterAt = now
    state.meter = readMeter(state.agent)
  }
  const { running, meter, clock } = state
  if (state.hint !== '' && now - state.exitAskedAt >= EXIT_CONFIRM_MS) state.hint = ''
  return {
    status: running === null ? null : describeRunning(running, now),
    queue: state.queue.texts,
    meter: meter === null ? null : { ...meter, expiresAt: clock.expiresAt, notes: clock.notes },
    hint: state.hint,
  }
}

function readMeter({ session, readMode }: Agent): MeterReading {
  return {
    remaining: session.contextRemaining(),
    money: session.money(),
    prepared: session.status().preparedSummary,
    notes: 'none',
    expiresAt: null,
    model: session.model,
    mode: MODE_LABELS[readMode()],
  }
}
