/**
 * Exports of `@tidemark/simulator/internal`, which only tests of this repository use. They are not published: the
 * subpath can be imported only under the export condition `tidemark-source`.
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
