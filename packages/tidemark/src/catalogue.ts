export { lookUpModel, modelCatalogue } from '@tidemark/wire'
