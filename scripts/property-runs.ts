/** Before each test file: how often properties run, as the vitest config says. All their runs where it says nothing. */
import { setPropertyRunShare } from '@tidemark/core/testing'

setPropertyRunShare(Number(process.env.TIDEMARK_RUN_SHARE ?? '1'))
