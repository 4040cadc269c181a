/** Before each test file: how often properties run, as the vitest config says. All their runs where it says nothing. */
import { setRunShare } from '@tidemark/core/testing'

setRunShare(Number(process.env.TIDEMARK_RUN_SHARE ?? '1'))
