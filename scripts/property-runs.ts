/**
 * Before each test file: how often properties run, as the vitest config says (all their runs where it says nothing), and
 * the seed of their runs, where `TIDEMARK_SEED` gives one. Without it every run has another seed.
 */
import { setPropertyRunShare } from '@tidemark/core/testing'
import fc from 'fast-check'

const { TIDEMARK_RUN_SHARE = '1', TIDEMARK_SEED } = process.env
setPropertyRunShare(Number(TIDEMARK_RUN_SHARE))
if (TIDEMARK_SEED !== undefined) fc.configureGlobal({ seed: Number(TIDEMARK_SEED) })
