/** The entry point `@tidemark/core/testing`: builders, generators and fakes for the tests of all packages. */

export { Choices, choicesFrom, runs, setRunShare } from './choices.ts'
export { createFakeModel, type FakeModel, type FakeReply } from './fake-model.ts'
export {
  createCountingIds,
  createFakeBlobs,
  createFakeClock,
  createFakeJournal,
  type FakeClock,
  type FakeStore,
  readAll,
  sampleRecord,
  sampleRecords,
} from './fake-ports.ts'
export { type ExtraFields, SessionBuilder } from './session-builder.ts'
export {
  clearSession,
  compactSession,
  continueSession,
  type GeneratedSession,
  generateSession,
} from './session-generator.ts'
export { createTestHost, createTestRoom, runToEnd, type TestRoomOptions } from './test-host.ts'
