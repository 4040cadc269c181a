import { defineConfig } from 'vitest/config'

// Tests run on the sources: the `tidemark-source` condition of each package's exports names them.
export default defineConfig({
  resolve: { conditions: ['tidemark-source'] },
  ssr: { resolve: { conditions: ['tidemark-source'], externalConditions: ['tidemark-source'] } },
  test: {
    include: [
      'packages/*/src/**/*.test.ts',
      'packages/*/test/**/*.test.ts',
      'test/**/*.test.ts',
      'scripts/**/*.test.ts',
      'bench/**/*.test.ts',
    ],
    reporters: ['default', './scripts/totals-reporter.ts'],
    // Left to itself, vitest keeps one core for itself: on two cores that is half of them.
    maxWorkers: '100%',
    // A worker loads each module once for all its files. No test replaces a module or leaves anything set behind it.
    isolate: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
