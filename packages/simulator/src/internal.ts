/**
 * `@tidemark/simulator/internal` exports what tests elsewhere in this repository need and the public entry does not
 * have. It is not published: the subpath exists only under the `tidemark-source` condition.
 */

export { createModelTable, type SimulatedModel } from './protocol/models.ts'
export {
  BAD_SUMMARIZER_NAMES,
  BAD_SUMMARIZERS,
  type BadSummarizerName,
  INJECTED_INSTRUCTIONS,
} from './scripts/bad-summarizers.ts'
export { createFillerText } from './scripts/filler-text.ts'
export { isSummaryRequest } from './scripts/script.ts'
