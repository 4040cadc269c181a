import { defineConfig } from 'vitest/config'
import { shared } from './vitest.config.ts'

/** `npm run soak`: what is too long for the test run, in files named `*.soak.ts`. Properties run in full. */
export default defineConfig({
  ...shared,
  test: {
    ...shared.test,
    include: ['packages/**/*.soak.ts', 'test/**/*.soak.ts'],
    globalSetup: [...shared.test.globalSetup, './scripts/test-command.ts'],
    testTimeout: 1_800_000,
    passWithNoTests: true,
  },
})
