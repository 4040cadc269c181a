/** How a reader says that a line is nested too deep; what is too deep is core's to say. */
import { MAX_DEPTH } from '@tidemark/core'

export const TOO_DEEP: string = `the line is nested more than ${MAX_DEPTH} levels deep; it is set aside`
