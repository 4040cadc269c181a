/**
 * Ids of tool calls, each once in a session. OpenAI's are unique; other providers behind Codex count from 0
 * in every response, and a later call would pass for an earlier one.
 */
export interface CallIds {
  /** The id under which a new call goes. */
  opened(callId: string): string
  /** The id of the newest call so named. */
  answered(callId: string): string
}

export function createCallIds(): CallIds {
  const times = new Map<string, number>()
  return {
    opened(callId) {
      const time = (times.get(callId) ?? 0) + 1
      times.set(callId, time)
      return named(callId, time)
    },
    answered: (callId) => named(callId, times.get(callId) ?? 1),
  }
}

function named(callId: string, time: number): string {
  return time === 1 ? callId : `${callId}#${time}`
}
