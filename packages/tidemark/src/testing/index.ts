/**
 * The entry point `tidemark/testing`: fakes, generated sessions and conformance cases to test your own ports and agents.
 *
 * @module tidemark/testing
 */

export {
  createCountingIds,
  createFakeClock,
  createFakeModel,
  type FakeClock,
  type FakeReply,
  generateSession,
  SessionBuilder,
} from '@tidemark/core/testing'
export { createMemoryBlobs, createMemoryJournal, type MemoryStore } from '../storage/memory-stores.ts'
export { type CrashFileSystem, createCrashFileSystem } from './crash-file-system.ts'
export { filePortCases } from './file-system-cases.ts'
export { journalCases } from './journal-cases.ts'
export type { JournalSubject } from './journal-refusal-cases.ts'
export { blobStoreCases, type ConformanceCase, clockCases, deadlinesCases, idsCases } from './port-cases.ts'
