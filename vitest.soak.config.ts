import { mergeConfig } from 'vitest/config'
import base from './vitest.config.ts'

// What is too long for the test run: files named `*.soak.ts`.
export default mergeConfig(
  { ...base, test: { ...base.test, include: [] } },
  {
    test: {
      include: ['packages/**/*.soak.ts', 'test/**/*.soak.ts'],
      testTimeout: 1_800_000,
      passWithNoTests: true,
    },
  },
)
