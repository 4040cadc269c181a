/** What people who build on Tidemark test with: generated sessions, fakes of the ports, conformance suites. */

export { createMemoryBlobs, createMemoryJournal, type MemoryStore } from '../storage/memory-stores.ts'
export { Choices, choicesFrom } from './block-generator.ts'
export {
  type BlobStoreSubject,
  blobStoreCases,
  type ClockSubject,
  type ConformanceCase,
  clockCases,
  type DeadlinesSubject,
  deadlinesCases,
  idsCases,
} from './conformance.ts'
export {
  type Fault,
  type FileOperation,
  type Interference,
  type OperationKind,
  systemError,
  type UnsyncedWrite,
} from './crash-file.ts'
export {
  createForgetfulFiles,
  type ForgetfulFiles,
  type ForgetfulFilesOptions,
  type KeptByChance,
  type NameChange,
} from './crash-file-system.ts'
export {
  createCountingIds,
  createFakeClock,
  createFakeMachine,
  type FakeClock,
  type FakeMachine,
} from './fake-ports.ts'
export { type FilePortSubject, filePortCases } from './file-system-cases.ts'
export { journalCases } from './journal-cases.ts'
export { type JournalSubject, readAll } from './journal-refusal-cases.ts'
export { type Extra, Teller } from './session-builder.ts'
export {
  clearSession,
  compactSession,
  continueSession,
  type GeneratedSession,
  generateSession,
} from './session-generator.ts'
