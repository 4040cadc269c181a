/**
 * `tidemark/catalogue`: context windows, limits and prices of models, with the date and source of each figure.
 *
 * @module tidemark/catalogue
 */

export type { Catalogue, FoundModel } from '@tidemark/wire/catalogue/catalogue'
export { lookUpModel, modelCatalogue, pricesAtDate } from '@tidemark/wire/catalogue/catalogue'
export { withModels } from '@tidemark/wire/catalogue/custom-models'
export type { ModelEntry } from '@tidemark/wire/catalogue/model-entry'
export { createProviderProfile } from '@tidemark/wire/profiles/provider-profile'
