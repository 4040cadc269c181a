/**
 * `@tidemark/simulator/internal`: names that tests elsewhere in this repository need and the public entry does not have.
 * No promise, and not published: the subpath exists only under the `tidemark-source` condition.
 */

export { modelTable, type SimulatedModel } from './protocol/models.ts'
export { ADVERSARY_NAMES, type AdversaryName, adversaries, INJECTED } from './scripts/adversarial-models.ts'
export { prose } from './scripts/filler-text.ts'
export { isSummaryRequest } from './scripts/script.ts'
