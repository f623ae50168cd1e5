export default {
  name: 'store',
  data() { return {}; },
  mounted: function () {},
};
