import { Cart } from './cart';
test('it', () => {});
