import { availableParallelism } from 'node:os'
import { defineConfig, type ViteUserConfig } from 'vitest/config'
import WholeSessionsFirst from './scripts/test-order.ts'

/** What every run shares. Tests run on the sources: the `tidemark-source` condition of each package names them. */
export const shared = {
  resolve: { conditions: ['tidemark-source'] },
  ssr: { resolve: { conditions: ['tidemark-source'], externalConditions: ['tidemark-source'] } },
  test: {
    reporters: ['default', './scripts/totals-reporter.ts'],
    // More workers than cores: some tests wait for the disk.
    maxWorkers: Math.ceil(1.5 * availableParallelism()),
    // Most objects of a test die young: a larger space for them saves a tenth of the time.
    execArgv: ['--max-semi-space-size=64'],
    // A worker loads each module once for all its files. No test replaces a module or leaves anything set behind it.
    isolate: false,
    sequence: { sequencer: WholeSessionsFirst },
    globalSetup: ['./scripts/test-environment.ts', './scripts/test-postgres.ts'],
    setupFiles: ['./scripts/property-runs.ts'],
    // On a busy machine everything takes longer. Only what never ends should meet these limits.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 60_000, interval: 20 } },
  },
} satisfies ViteUserConfig

/** Tests that start processes all the time, or wait for a database. */
const PROCESS_TESTS = [
  'packages/{agent,cli,terminal}/{src,test}/**/*.test.ts',
  'packages/simulator/test/coder-clients.test.ts',
  'packages/tidemark/src/hooks/*.test.ts',
  'packages/tidemark/test/{kill,race}.test.ts',
  'test/**/{kill*,*race}.test.ts',
  'test/compact-process.test.ts',
  'test/gateway/*.test.ts',
  'test/journeys.test.ts',
  'test/library/{documents,two-processes}.test.ts',
]

/**
 * `npm test` runs properties a tenth as often as `npm run test:full` (`--mode full`), and of long lists of cases a sample. `TIDEMARK_RUN_SHARE=50` runs them
 * fifty times as often; `TIDEMARK_SEED` repeats the runs of one seed.
 */
export default defineConfig(({ mode }) => ({
  ...shared,
  test: {
    ...shared.test,
    env: { TIDEMARK_RUN_SHARE: process.env.TIDEMARK_RUN_SHARE ?? (mode === 'full' ? '1' : '0.1') },
    projects: [
      {
        extends: true,
        test: {
          name: 'sessions',
          include: [
            'packages/*/src/**/*.test.ts',
            'packages/*/test/**/*.test.ts',
            'packages/*/testing/**/*.test.ts',
            'test/**/*.test.ts',
            'scripts/**/*.test.ts',
            'bench/**/*.test.ts',
          ],
          exclude: ['**/node_modules/**', ...PROCESS_TESTS],
          sequence: { sequencer: WholeSessionsFirst, groupOrder: 1 },
        },
      },
      // To start a process takes as long as the memory of the worker is large, so these have workers of their own, without
      // what thousands of sessions leave in memory. They run first, while the check of `npm test` runs.
      {
        extends: true,
        test: {
          name: 'processes',
          include: PROCESS_TESTS,
          globalSetup: ['./scripts/test-command.ts'],
          // They wait more than half of the time: for a process, a browser, a screen, a database.
          maxWorkers: Math.ceil(2.5 * availableParallelism()),
        },
      },
    ],
  },
}))
