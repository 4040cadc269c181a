import type { NewRecord } from '@tidemark/core'

/** A user's message, the next of its session. */
export function sampleRecord(
  uuid: string,
  content = `message ${uuid}`,
  parentUuid: string | null = null,
): NewRecord {
  return {
    type: 'user',
    uuid,
    parentUuid,
    timestamp: '2026-01-01T00:00:00.000Z',
    sessionId: 'sample',
    message: { role: 'user', content },
  }
}

/** Messages in a chain, as they would be said one after the other. */
export function sampleRecords(...uuids: readonly string[]): readonly NewRecord[] {
  return uuids.map((uuid, index) => sampleRecord(uuid, undefined, uuids[index - 1] ?? null))
}
