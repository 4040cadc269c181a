/** The entry point `@tidemark/core/testing`: builders, generators and fakes for the tests of all packages. */

export {
  countMaximumSummaryCalls,
  type ForkResult,
  listRepairs,
  runFork,
  runSingleTurn,
  type SingleTurnOptions,
  validateContext,
} from './engine-calls.ts'
export { collectReply, createFakeModel, type FakeModel, type FakeReply } from './fake-model.ts'
export {
  createCountingIds,
  createFakeBlobs,
  createFakeClock,
  createFakeJournal,
  type FakeClock,
  type FakeJournalStore,
  readAllRecords,
  sampleRecord,
  sampleRecords,
} from './fake-ports.ts'
export {
  countPropertyRuns,
  createChoices,
  createRandomNumbers,
  GeneratorChoices,
  isFullRun,
  sampleCases,
  setPropertyRunShare,
} from './generator-choices.ts'
export { type ExtraRecordFields, SessionBuilder } from './session-builder.ts'
export {
  clearSession,
  compactSession,
  continueSession,
  type GeneratedSession,
  generateSession,
} from './session-generator.ts'
export {
  COLD_CACHE,
  createIdleCompaction,
  createTestCompaction,
  createTestHost,
  EMPTY_PLAN_TRACKING,
  runToEnd,
  type TestCompactionOptions,
} from './test-host.ts'
export { createUsage, readTestReport, type TestUsage } from './test-usage.ts'
