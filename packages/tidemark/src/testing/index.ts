/** What people who build on Tidemark test with: generated sessions, fakes of the ports, conformance suites. */
export { type BlobStoreSubject, blobStoreCases } from './blob-store-cases.ts'
export { Choices, choicesFrom } from './choices.ts'
export { type ClockSubject, clockCases } from './clock-cases.ts'
export type { ConformanceCase } from './conformance.ts'
export { createCountingIds } from './counting-ids.ts'
export { type DeadlinesSubject, deadlinesCases } from './deadlines-cases.ts'
export { createFakeClock, type FakeClock } from './fake-clock.ts'
export { createFakeMachine, type FakeMachine } from './fake-machine.ts'
export {
  type Fault,
  type FileOperation,
  type Interference,
  type OperationKind,
  systemError,
} from './file-operations.ts'
export { type FilePortSubject, filePortCases } from './file-port-cases.ts'
export {
  createForgetfulFiles,
  type ForgetfulFiles,
  type ForgetfulFilesOptions,
  type KeptByChance,
} from './forgetful-files.ts'
export type { NameChange } from './forgetful-names.ts'
export type { UnsyncedWrite } from './forgetful-node.ts'
export { idsCases } from './ids-cases.ts'
export { journalCases } from './journal-cases.ts'
export { type JournalSubject, readAll } from './journal-subject.ts'
export { createMemoryBlobs } from './memory-blobs.ts'
export { createMemoryJournal, type MemoryStore } from './memory-journal.ts'
export {
  clearSession,
  compactSession,
  continueSession,
  type GeneratedSession,
  generateSession,
} from './session-generator.ts'
export { type Extra, Teller } from './teller.ts'
