import { formatMoney } from './money.mjs';
const lazy = () => import('./store/index.js');

export class Cart extends Base.Widget {
  static #count = 0;
  items = [];
  handle = async (event, { deep } = {}) => { this.render(); };

  constructor(items, options) {
    super();
    this.items = items;
    this.options = options;
  }

  get total() { return formatMoney(1); }
  set total(value) {}
  static create(...items) { return new Cart(items); }
  async *stream() {}
  ['computed' + 1]() {}
  #secret() {}
}

const Hidden = class extends Cart {};
export default class extends Hidden { run() {} }
