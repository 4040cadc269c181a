/**
 * `tidemark/catalogue`: context windows, limits and prices of models, with the date and source of each figure.
 *
 * @module tidemark/catalogue
 */

export type { Catalogue, FoundModel, ModelEntry } from '@tidemark/wire'
export {
  createProviderProfile,
  lookUpModel,
  modelCatalogue,
  pricesAtDate,
  withModels,
} from '@tidemark/wire'
